//! The Ed25519 key pair that is the identity of an installation.
use coeval_value::PeerId;
use data_encoding::{BASE64, HEXLOWER};
use ring::rand::SystemRandom;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const PEM_BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
/// What precedes the 32 bytes of a private Ed25519 key in PKCS#8 (RFC 8410, section 7).
const PKCS8_PREFIX: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];
const PEM_END: &str = "-----END PRIVATE KEY-----";
/// A PKCS#8 Ed25519 key in PEM is about 170 bytes; a file larger than this is something else.
const MAX_FILE: u64 = 16 * 1024;

/// Why an identity could not be had.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The operating system refused.
    #[error("cannot {doing} the identity file {path}: {source}", path = path.display())]
    Io {
        /// What was tried: "read", "create", "write".
        doing: &'static str,
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not an Ed25519 private key.
    #[error(
        "{path} is not an identity file ({why}); restore it from a backup, or delete it to get a new identity",
        path = path.display()
    )]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Others may read the file.
    #[error(
        "the identity file {path} can be read by others (mode {mode:o}); run `chmod 600` on it",
        path = path.display()
    )]
    Exposed {
        /// Which file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// These are not the bytes of a private key.
    #[error("this is not the secret of an identity: {why}")]
    Unusable {
        /// What is wrong with them.
        why: String,
    },
    /// The system's random source failed.
    #[error("the operating system gave no random bytes for a new identity")]
    Random,
}

/// The key pair of an installation; its public key is the [`PeerId`]. Clones share the key.
#[derive(Clone)]
pub struct Identity {
    pair: Arc<Ed25519KeyPair>,
    pkcs8: Arc<[u8]>,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Identity({})", short(self.peer()))
    }
}

impl Identity {
    /// A new identity, kept in memory only.
    pub fn generate() -> Result<Self, IdentityError> {
        let document =
            Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).map_err(|_| IdentityError::Random)?;
        Self::from_pkcs8(document.as_ref()).map_err(|_| IdentityError::Random)
    }

    /// The identity kept at `path` (PKCS#8 in PEM), made and saved there if the file does not exist.
    ///
    /// A new file is readable by its owner only and appears whole or not at all; two processes that create it at once
    /// end with the same identity.
    pub fn load_or_create(path: &Path) -> Result<Self, IdentityError> {
        match Self::load(path) {
            Err(IdentityError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                Self::create(path)
            }
            other => other,
        }
    }

    /// The public key.
    pub fn peer(&self) -> PeerId {
        let mut key = [0; 32];
        key.copy_from_slice(self.pair.public_key().as_ref());
        PeerId(key)
    }

    /// The Ed25519 signature of `message` (RFC 8032).
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        let mut signature = [0; 64];
        signature.copy_from_slice(self.pair.sign(message).as_ref());
        signature
    }

    /// Whether `signature` is that of `message` by `peer`.
    pub fn verify(peer: PeerId, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, peer.0).verify(message, signature).is_ok()
    }

    /// The private key, PKCS#8: for keeping it where nobody else can read it.
    pub fn secret_pkcs8(&self) -> &[u8] {
        &self.pkcs8
    }

    /// The identity whose private key is this.
    ///
    /// # Errors
    /// [`IdentityError::Unusable`].
    pub fn from_secret_pkcs8(pkcs8: &[u8]) -> Result<Self, IdentityError> {
        Self::from_pkcs8(pkcs8).map_err(|why| IdentityError::Unusable { why })
    }

    pub(crate) fn pkcs8(&self) -> &[u8] {
        &self.pkcs8
    }

    /// 32 bytes that only the holder of this identity can compute, the same at every start.
    pub(crate) fn derive(&self, purpose: &[u8]) -> [u8; 32] {
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &self.pkcs8);
        let mut out = [0; 32];
        out.copy_from_slice(ring::hmac::sign(&key, purpose).as_ref());
        out
    }

    /// The identity of a private key.
    pub(crate) fn from_seed(seed: [u8; 32]) -> Result<Self, String> {
        Self::from_pkcs8(&[PKCS8_PREFIX.as_slice(), &seed].concat())
    }

    fn from_pkcs8(pkcs8: &[u8]) -> Result<Self, String> {
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(pkcs8)
            .map_err(|why| format!("not an Ed25519 key: {why}"))?;
        Ok(Self { pair: Arc::new(pair), pkcs8: pkcs8.into() })
    }

    fn load(path: &Path) -> Result<Self, IdentityError> {
        let failed = |source| IdentityError::Io { doing: "read", path: path.to_owned(), source };
        let malformed = |why: String| IdentityError::Malformed { path: path.to_owned(), why };
        let meta = std::fs::metadata(path).map_err(failed)?;
        if meta.len() > MAX_FILE {
            return Err(malformed(format!("{} bytes long", meta.len())));
        }
        check_mode(path, &meta)?;
        let text = std::fs::read(path).map_err(failed)?;
        let text = String::from_utf8(text).map_err(|_| malformed("not text".into()))?;
        let body = text
            .trim()
            .strip_prefix(PEM_BEGIN)
            .and_then(|rest| rest.strip_suffix(PEM_END))
            .ok_or_else(|| malformed(format!("no {PEM_BEGIN:?} block")))?;
        let body: String = body.split_ascii_whitespace().collect();
        let pkcs8 = BASE64.decode(body.as_bytes()).map_err(|why| malformed(format!("bad base64: {why}")))?;
        Self::from_pkcs8(&pkcs8).map_err(malformed)
    }

    fn create(path: &Path) -> Result<Self, IdentityError> {
        let identity = Self::generate()?;
        let failed = |doing| move |source| IdentityError::Io { doing, path: path.to_owned(), source };
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(failed("create the folder of"))?;
        }
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{:016x}.new", rand::random::<u64>()));
        let draft = path.with_file_name(name);
        let written = write_private(&draft, &identity.to_pem())
            .map_err(failed("write"))
            // A hard link refuses to replace a file that another process made meanwhile; a rename would not.
            .and_then(|()| std::fs::hard_link(&draft, path).map_err(failed("create")));
        let removed = std::fs::remove_file(&draft);
        match written {
            Err(IdentityError::Io { source, .. }) if source.kind() == std::io::ErrorKind::AlreadyExists => {
                Self::load(path)
            }
            Err(why) => Err(why),
            Ok(()) => removed.map(|()| identity).map_err(failed("clean up after")),
        }
    }

    fn to_pem(&self) -> String {
        format!("{PEM_BEGIN}\n{}\n{PEM_END}\n", BASE64.encode(&self.pkcs8))
    }
}

/// The first 8 bytes of a key in hexadecimal: enough to tell peers apart in a message.
pub(crate) fn short(peer: PeerId) -> String {
    HEXLOWER.encode(&peer.0[..8])
}

fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(unix)]
fn check_mode(path: &Path, meta: &std::fs::Metadata) -> Result<(), IdentityError> {
    let mode = std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o777;
    if mode & 0o077 != 0 {
        return Err(IdentityError::Exposed { path: path.to_owned(), mode });
    }
    Ok(())
}

#[cfg(not(unix))]
fn check_mode(_: &Path, _: &std::fs::Metadata) -> Result<(), IdentityError> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identity_survives_a_restart_and_signs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/er/identity.pem");
        let first = Identity::load_or_create(&path).unwrap();
        let second = Identity::load_or_create(&path).unwrap();
        assert_eq!(first.peer(), second.peer());
        let signature = first.sign(b"hello");
        assert!(Identity::verify(second.peer(), b"hello", &signature));
        assert!(!Identity::verify(second.peer(), b"hellp", &signature));
        assert_eq!(
            Identity::from_seed([5; 32]).unwrap().peer(),
            Identity::from_seed([5; 32]).unwrap().peer()
        );
        assert_ne!(Identity::generate().unwrap().peer(), first.peer());
        let files = std::fs::read_dir(path.parent().unwrap()).unwrap().count();
        assert_eq!(files, 1, "no draft is left behind");
    }

    #[test]
    fn two_processes_creating_at_once_get_one_identity() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("identity.pem");
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let path = path.clone();
                std::thread::spawn(move || Identity::load_or_create(&path).unwrap().peer())
            })
            .collect();
        let peers: std::collections::BTreeSet<_> =
            threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert_eq!(peers.len(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn identity_file_is_private_and_an_exposed_one_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("identity.pem");
        Identity::load_or_create(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let error = Identity::load_or_create(&path).unwrap_err().to_string();
        assert!(error.contains("chmod 600") && error.contains("644"), "{error}");
    }

    #[test]
    fn damaged_identity_files_are_named_and_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("identity.pem");
        let whole = Identity::generate().unwrap().to_pem();
        for bad in [&whole[..whole.len() / 2], "", "hello", &whole.replace("MFE", "AAA").replace("MC", "AA")]
        {
            let _ = std::fs::remove_file(&path);
            write_private(&path, bad).unwrap();
            let error = Identity::load_or_create(&path).unwrap_err();
            assert!(matches!(error, IdentityError::Malformed { .. }), "{error}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), bad);
        }
    }

    #[test]
    fn unwritable_folder_gives_a_clear_error() {
        let error = Identity::load_or_create(Path::new("/proc/no/identity.pem")).unwrap_err().to_string();
        assert!(error.contains("/proc/no/identity.pem"), "{error}");
    }
}
