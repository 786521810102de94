//! What the journal needs of a disk, and the real one.
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A place for files. The journal uses it from one thread at a time.
pub trait Disk: Send {
    /// Makes a file anew, empty, for its owner only, and opens its end for writing.
    fn create(&self, path: &Path) -> io::Result<Box<dyn Tail>>;

    /// Opens a file for reading.
    fn open(&self, path: &Path) -> io::Result<Box<dyn Source>>;

    /// Lets `from` take the place of `to`, whole or not at all; on return this survives the machine's end.
    fn replace(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
}

/// The end of a file that is being written.
pub trait Tail: Send {
    /// Appends all of `bytes`. After an error some of them may be there.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// On return, all that was appended survives the machine's end.
    fn sync(&mut self) -> io::Result<()>;
}

/// A file that is being read.
pub trait Source {
    /// How long it is, bytes.
    fn size(&mut self) -> io::Result<u64>;

    /// Reads from `offset` on, at most as much as fits, perhaps less; 0 only at the end.
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<usize>;
}

/// The operating system's files.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileDisk;

impl Disk for FileDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn Tail>> {
        // What lies there may be open to others, and stay so: it goes first.
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = OpenOptions::new();
        options.append(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        Ok(Box::new(options.open(path)?))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn Source>> {
        Ok(Box::new(File::open(path)?))
    }

    fn replace(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)?;
        sync_folder(to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }
}

/// A rename is in the folder, and the folder has to be synced for it to last.
fn sync_folder(of: &Path) -> io::Result<()> {
    if cfg!(not(unix)) {
        // Other systems cannot open folders, and order a rename after the file's own sync by themselves.
        return Ok(());
    }
    let folder = of.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

impl Tail for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

impl Source for File {
    fn size(&mut self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.seek(SeekFrom::Start(offset))?;
        loop {
            match self.read(into) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }
}

/// The path beside `path` that ends with `suffix` too.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
