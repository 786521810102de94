//! Conversions to the maths crates that simulations already use: `mint` always, `glam` and `nalgebra` by feature.
//!
//! The builders of [`Motion`](crate::Motion) take anything that converts to `[f64; 3]`, which all three do by themselves.
use crate::typed::conversions;
use crate::{Matrix, Parameter, Quat, TypeMismatch, Value};

impl From<mint::Quaternion<f64>> for Quat {
    fn from(q: mint::Quaternion<f64>) -> Self {
        Self { x: q.v.x, y: q.v.y, z: q.v.z, w: q.s }
    }
}

impl From<Quat> for mint::Quaternion<f64> {
    fn from(q: Quat) -> Self {
        Self { v: mint::Vector3 { x: q.x, y: q.y, z: q.z }, s: q.w }
    }
}

impl From<mint::RowMatrix3<f64>> for Matrix {
    fn from(m: mint::RowMatrix3<f64>) -> Self {
        let rows: [[f64; 3]; 3] = m.into();
        Self { rows: 3, columns: 3, elements: rows.concat() }
    }
}

/// Refused unless the matrix is 3 by 3.
impl TryFrom<&Matrix> for mint::RowMatrix3<f64> {
    type Error = TypeMismatch;

    fn try_from(m: &Matrix) -> Result<Self, TypeMismatch> {
        let flat: [f64; 9] = match (m.rows, m.columns) {
            (3, 3) => m.elements.as_slice().try_into().ok(),
            _ => None,
        }
        .ok_or(TypeMismatch::Inexact { found: "matrix", asked: "a matrix of 3 by 3" })?;
        Ok(Self::from([
            [flat[0], flat[1], flat[2]],
            [flat[3], flat[4], flat[5]],
            [flat[6], flat[7], flat[8]],
        ]))
    }
}

/// Parameter types that read and write as another one.
macro_rules! through {
    ($($t:ty => $own:ty, |$own_value:ident| $from:expr, |$foreign:ident| $into:expr;)*) => {$(
        impl Parameter for $t {
            const TYPE_NAME: &'static str = <$own as Parameter>::TYPE_NAME;
            fn from_value(value: &Value) -> Result<Self, TypeMismatch> {
                let $own_value = <$own>::from_value(value)?;
                Ok($from)
            }
            fn into_value(self) -> Value {
                let $foreign = self;
                <$own>::into_value($into)
            }
            fn write_words(&self, out: &mut crate::words::Words) -> Option<(u8, usize)> {
                let $foreign = *self;
                <$own>::write_words(&$into, out)
            }
            fn read_words(kind: u8, words: &[u64]) -> Option<Result<Self, TypeMismatch>> {
                <$own>::read_words(kind, words).map(|read| read.map(|$own_value| $from))
            }
        }
        conversions!($t);
    )*};
}

through! {
    mint::Vector2<f64> => [f64; 2], |v| v.into(), |v| v.into();
    mint::Vector3<f64> => [f64; 3], |v| v.into(), |v| v.into();
    mint::Vector4<f64> => [f64; 4], |v| v.into(), |v| v.into();
    mint::Quaternion<f64> => Quat, |q| q.into(), |q| q.into();
    mint::RowMatrix3<f64> => [[f64; 3]; 3], |m| m.into(), |m| m.into();
}

#[cfg(feature = "glam")]
mod for_glam {
    use super::*;

    impl From<glam::DQuat> for Quat {
        fn from(q: glam::DQuat) -> Self {
            Self { x: q.x, y: q.y, z: q.z, w: q.w }
        }
    }

    impl From<Quat> for glam::DQuat {
        fn from(q: Quat) -> Self {
            Self::from_xyzw(q.x, q.y, q.z, q.w)
        }
    }

    // glam stores columns, coeval rows: the transposes keep the element at row r and column c where it is.
    through! {
        glam::DVec2 => [f64; 2], |v| v.into(), |v| v.into();
        glam::DVec3 => [f64; 3], |v| v.into(), |v| v.into();
        glam::DVec4 => [f64; 4], |v| v.into(), |v| v.into();
        glam::DQuat => Quat, |q| q.into(), |q| q.into();
        glam::DMat3 => [[f64; 3]; 3], |m| Self::from_cols_array_2d(&m).transpose(), |m| m.transpose().to_cols_array_2d();
    }
}

#[cfg(feature = "nalgebra")]
mod for_nalgebra {
    use super::*;

    impl From<nalgebra::UnitQuaternion<f64>> for Quat {
        fn from(q: nalgebra::UnitQuaternion<f64>) -> Self {
            Self { x: q.i, y: q.j, z: q.k, w: q.w }
        }
    }

    /// Taken as it is: normalize first what may not be of length one.
    impl From<Quat> for nalgebra::UnitQuaternion<f64> {
        fn from(q: Quat) -> Self {
            Self::new_unchecked(nalgebra::Quaternion::new(q.w, q.x, q.y, q.z))
        }
    }

    // nalgebra's arrays are columns, coeval's rows: the transposes keep the element at row r and column c where it is.
    through! {
        nalgebra::Vector2<f64> => [f64; 2], |v| v.into(), |v| v.into();
        nalgebra::Vector3<f64> => [f64; 3], |v| v.into(), |v| v.into();
        nalgebra::Vector4<f64> => [f64; 4], |v| v.into(), |v| v.into();
        nalgebra::UnitQuaternion<f64> => Quat, |q| q.into(), |q| q.into();
        nalgebra::Matrix3<f64> => [[f64; 3]; 3], |m| Self::from(m).transpose(), |m| m.transpose().into();
    }
}
