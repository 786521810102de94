//! The conversions to maths crates keep components, matrix elements and rotations where they are.
use coeval_value::{Matrix, Motion, Parameter, Quat, Value};

fn turn() -> Quat {
    Quat::from_axis_angle([1.0, -2.0, 0.5], 0.8).unwrap()
}

fn rows() -> [[f64; 3]; 3] {
    [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]
}

#[test]
fn mint_types_are_parameters() {
    let v = mint::Vector3 { x: 1.0, y: 2.0, z: 3.0 };
    assert_eq!(Value::from(v), Value::Vec3([1.0, 2.0, 3.0]));
    assert_eq!(Motion::at(v).position, Some([1.0, 2.0, 3.0]));
    let q: mint::Quaternion<f64> = turn().into();
    assert_eq!((q.s, Quat::from(q)), (turn().w, turn()));
    let m = mint::RowMatrix3::<f64>::from_value(&Value::from(rows())).unwrap();
    assert_eq!(m.y.x, 4.0);
    assert_eq!(mint::RowMatrix3::try_from(&Matrix::from(m)).unwrap(), m);
    assert!(mint::RowMatrix3::try_from(&Matrix::new(1, 9, vec![0.0; 9]).unwrap()).is_err());
}

#[cfg(feature = "glam")]
#[test]
fn glam_rotates_alike_and_keeps_rows() {
    let ours = turn().rotate([1.0, 2.0, 3.0]);
    let theirs = glam::DQuat::from(turn()) * glam::DVec3::new(1.0, 2.0, 3.0);
    assert!((theirs - glam::DVec3::from(ours)).length() < 1e-14);
    let m = glam::DMat3::from_value(&Value::from(rows())).unwrap();
    assert_eq!(m.row(1).to_array(), [4.0, 5.0, 6.0]);
    assert_eq!(m.into_value(), Value::from(rows()));
    assert_eq!(Motion::at(glam::DVec3::X).position, Some([1.0, 0.0, 0.0]));
}

#[cfg(feature = "nalgebra")]
#[test]
fn nalgebra_rotates_alike_and_keeps_rows() {
    let ours = turn().rotate([1.0, 2.0, 3.0]);
    let theirs = nalgebra::UnitQuaternion::from(turn()) * nalgebra::Vector3::new(1.0, 2.0, 3.0);
    assert!((theirs - nalgebra::Vector3::from(ours)).norm() < 1e-14);
    let m = nalgebra::Matrix3::from_value(&Value::from(rows())).unwrap();
    assert_eq!(m[(1, 0)], 4.0);
    assert_eq!(m.into_value(), Value::from(rows()));
    assert_eq!(Motion::at(nalgebra::Vector3::x()).position, Some([1.0, 0.0, 0.0]));
}
