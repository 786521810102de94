//! The stable numbers of the value types, shared by the word form and the codecs. Never reused, never renumbered.

macro_rules! kinds {
    ($($name:ident = $number:literal, $text:literal, $doc:literal;)*) => {
        $(#[doc = $doc] pub const $name: u8 = $number;)*

        /// The name of a kind, as errors and the human-readable serde form print it; `None` for an unknown number.
        pub const fn name(kind: u8) -> Option<&'static str> {
            match kind { $($number => Some($text),)* _ => None }
        }

        /// The kind called `name`; `None` for an unknown name.
        pub fn by_name(name: &str) -> Option<u8> {
            match name { $($text => Some($number),)* _ => None }
        }

        /// Every kind, ascending.
        pub const ALL: &[u8] = &[$($number),*];
    };
}

kinds! {
    NIL = 0, "nil", "Nothing.";
    BOOL = 1, "bool", "True or false.";
    INT = 2, "int", "`i64`.";
    UINT = 3, "uint", "`u64`.";
    FLOAT = 4, "float", "`f64`.";
    FLOAT32 = 5, "float32", "`f32`.";
    TEXT = 6, "text", "UTF-8 text.";
    BYTES = 7, "bytes", "Raw bytes.";
    UUID = 8, "uuid", "A UUID.";
    ENTITY = 9, "entity", "A reference to an entity.";
    TIME = 10, "time", "A sim instant.";
    DURATION = 11, "duration", "A length of sim time.";
    VEC2 = 12, "vec2", "Two `f64`.";
    VEC3 = 13, "vec3", "Three `f64`.";
    VEC4 = 14, "vec4", "Four `f64`.";
    QUAT = 15, "quat", "A rotation.";
    RAMP = 16, "ramp", "A scalar with a rate.";
    MATRIX = 17, "matrix", "A matrix of `f64`.";
    INTS = 18, "ints", "Array of `i64`.";
    UINTS = 19, "uints", "Array of `u64`.";
    FLOATS = 20, "floats", "Array of `f64`.";
    FLOATS32 = 21, "floats32", "Array of `f32`.";
    LIST = 22, "list", "A list of values.";
    MAP = 23, "map", "A map of values.";
    MOTION = 24, "motion", "Kinematic state.";
}
