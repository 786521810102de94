//! What a journal gives back: whole batches or a clear error, whatever happens to the disk.
use coeval_journal::{
    Disk, FileDisk, Header, JournalError, Lock, OnDamage, Recovery, Report, Scribe, SimDisk, SyncPolicy,
    Writer,
};
use coeval_time::{Genesis, Incarnation, SessionId, SimTime, WallTime};
use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::path::Path;
use std::time::{Duration, Instant};
use uuid::Uuid;

const PATH: &str = "j";

fn header() -> Header {
    Header {
        session: SessionId(Uuid::from_u128(7)),
        genesis: Genesis { wall: WallTime::from_nanos(5), sim: SimTime::from_nanos(-3), scale: -0.5 },
        config_digest: Some([9; 16]),
        data: b"name".to_vec(),
        key: [3; 32],
        identity: vec![4; 85],
        name: "ada".to_owned(),
        listen: "127.0.0.1:4433".to_owned(),
        writers: vec![Incarnation(11), Incarnation(12)],
    }
}

/// Batch `n` of file `file`: two messages and a mark. Its messages say which batch they are of.
fn write_batch(writer: &mut Writer<SimDisk>, file: u64, n: u64) -> Result<(), JournalError> {
    for part in 0..2_u8 {
        let mut message = n.to_be_bytes().to_vec();
        message.extend(vec![part; (n as usize * 7) % 60]);
        writer.append(file, None, &message)?;
    }
    writer.append(file, Some(n), &n.to_be_bytes())
}

/// The batches that a journal gives back; panics if one is not whole or not in order.
fn batches(disk: &dyn Disk, path: &Path, on_damage: OnDamage) -> Result<Vec<u64>, JournalError> {
    let found = Recovery::open(disk, path, on_damage)?;
    assert_eq!(found.header, header());
    let mut messages = Vec::new();
    found.replay(disk, |message| {
        messages.push(u64::from_be_bytes(message[..8].try_into().expect("eight bytes")));
        Ok(())
    })?;
    assert_eq!(messages.len() as u64, found.messages);
    let whole = messages.chunks(3).map(|batch| {
        assert!(batch.len() == 3 && batch.iter().all(|n| *n == batch[0]), "half a batch: {batch:?}");
        batch[0]
    });
    Ok(whole.collect())
}

/// A journal of `count` batches, synced after each `every`.
fn journal(disk: &SimDisk, count: u64, every: u64) -> Writer<SimDisk> {
    let mut writer = Writer::new(disk.clone(), Path::new(PATH), &header()).unwrap();
    for n in 1..=count {
        write_batch(&mut writer, 1, n).unwrap();
        writer.settle(n.is_multiple_of(every)).unwrap();
    }
    writer
}

fn is_prefix(batches: &[u64]) -> bool {
    batches.iter().copied().eq(1..=batches.len() as u64)
}

#[test]
fn what_was_written_comes_back_with_its_header() {
    let disk = SimDisk::new();
    let mut writer = journal(&disk, 20, 1);
    assert_eq!(batches(&disk, Path::new(PATH), OnDamage::Refuse).unwrap(), (1..=20).collect::<Vec<_>>());
    writer.close().unwrap();
    let found = Recovery::open(&disk, Path::new(PATH), OnDamage::Refuse).unwrap();
    assert!(found.closed && found.cut() == 0 && found.marks == 20, "{found:?}");
    let text = format!("{found:?}");
    assert!(!text.contains("identity") && !text.contains("key"), "secrets in {text}");
}

/// Whatever the place where a file ends, it gives the whole batches before.
#[test]
fn cut_anywhere_it_gives_the_whole_batches_before() {
    let disk = SimDisk::new();
    journal(&disk, 8, 1).close().unwrap();
    let whole = disk.bytes(Path::new(PATH)).unwrap();
    let mut seen = 0;
    for end in 0..whole.len() {
        disk.put(Path::new("cut"), whole[..end].to_vec());
        match batches(&disk, Path::new("cut"), OnDamage::Refuse) {
            Ok(batches) => {
                assert!(is_prefix(&batches) && batches.len() >= seen, "cut at {end}: {batches:?}");
                seen = batches.len();
            }
            Err(error) => {
                assert!(matches!(error, JournalError::NotAJournal { .. }) && seen == 0, "{end}: {error}")
            }
        }
    }
    assert_eq!(seen, 8);
}

/// A flipped bit is damage that is told, never a silent loss: every place of a file that was closed in order was synced.
#[test]
fn any_flipped_byte_is_told_or_loses_nothing() {
    let disk = SimDisk::new();
    journal(&disk, 6, 1).close().unwrap();
    let whole = disk.bytes(Path::new(PATH)).unwrap();
    for at in 0..whole.len() {
        for mask in [1_u8, 0x80, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] ^= mask;
            disk.put(Path::new("rot"), bytes);
            match batches(&disk, Path::new("rot"), OnDamage::Refuse) {
                Ok(batches) => assert_eq!(batches.len(), 6, "silently lost: byte {at}"),
                Err(JournalError::Damaged { offset, len, .. }) => {
                    assert!(offset <= at as u64 && len == whole.len() as u64);
                    let kept = batches(&disk, Path::new("rot"), OnDamage::Salvage).unwrap();
                    assert!(is_prefix(&kept) && kept.len() < 6, "byte {at}: {kept:?}");
                }
                Err(JournalError::NotAJournal { .. } | JournalError::Version { .. }) => {}
                Err(other) => panic!("byte {at}: {other}"),
            }
        }
    }
}

/// The machine ends: sectors that were not synced are there, are zeros, or are missing.
#[test]
fn a_tail_that_was_never_synced_is_cut_and_nothing_that_was() {
    for seed in 0..300 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let disk = SimDisk::new();
        let (count, every) = (rng.random_range(1..60), rng.random_range(1..20));
        drop(journal(&disk, count, every));
        disk.crash(&mut rng);
        let back =
            batches(&disk, Path::new(PATH), OnDamage::Refuse).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        // The first mark is synced before the file takes its place.
        let safe = (count / every * every).max(1);
        assert!(is_prefix(&back) && back.len() as u64 >= safe, "seed {seed}: {back:?}, {safe} were synced");
    }
}

/// At every instant of a change of files one whole journal is there.
#[test]
fn a_new_file_takes_the_place_of_the_old_whole_or_not_at_all() {
    for seed in 0..100 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let disk = SimDisk::new();
        let mut writer = journal(&disk, 5, 5);
        // A snapshot of the five, in one batch that is not marked yet.
        writer.append(2, None, &1_u64.to_be_bytes()).unwrap();
        writer.settle(true).unwrap();
        let before = disk.clone();
        assert_eq!(batches(&before, Path::new(PATH), OnDamage::Refuse).unwrap().len(), 5);
        if seed.is_multiple_of(2) {
            writer.append(2, None, &1_u64.to_be_bytes()).unwrap();
            writer.append(2, Some(1), &1_u64.to_be_bytes()).unwrap();
            assert_eq!(writer.settle(false).unwrap(), Some((2, 1)));
        }
        drop(writer);
        disk.crash(&mut rng);
        let back = batches(&disk, Path::new(PATH), OnDamage::Refuse).unwrap();
        assert_eq!(back.len(), if seed.is_multiple_of(2) { 1 } else { 5 }, "seed {seed}");
    }
}

#[test]
fn a_full_disk_leaves_the_old_journal_and_a_new_file_helps_when_there_is_room() {
    let disk = SimDisk::new();
    let mut writer = journal(&disk, 3, 1);
    disk.set_capacity(Some(disk.used() + 40));
    let failed =
        (4..100).find_map(|n| write_batch(&mut writer, 1, n).and_then(|()| writer.settle(true)).err());
    let error = failed.expect("the disk is full").to_string();
    assert!(error.contains("cannot write the journal j"), "{error}");
    // The file is given up: nothing more reaches it, though there is room.
    disk.set_capacity(None);
    write_batch(&mut writer, 1, 4).unwrap();
    assert_eq!(writer.settle(true).unwrap(), None);
    assert_eq!(batches(&disk, Path::new(PATH), OnDamage::Refuse).unwrap(), [1, 2, 3]);
    write_batch(&mut writer, 2, 1).unwrap();
    assert_eq!(writer.settle(true).unwrap(), Some((2, 1)));
    assert_eq!(batches(&disk, Path::new(PATH), OnDamage::Refuse).unwrap(), [1]);
}

#[test]
fn a_failed_sync_is_never_passed_over() {
    let disk = SimDisk::new();
    let mut writer = journal(&disk, 3, 1);
    disk.fail_syncs(true);
    write_batch(&mut writer, 1, 4).unwrap();
    assert!(writer.settle(true).unwrap_err().to_string().contains("cannot sync"), "told");
    disk.fail_syncs(false);
    // A second sync that succeeds says nothing about what the first one lost.
    assert_eq!(writer.settle(true).unwrap(), None);
}

#[test]
fn other_files_and_other_versions_are_refused_with_words() {
    let disk = SimDisk::new();
    let refused = |bytes: &[u8]| {
        disk.put(Path::new("x"), bytes.to_vec());
        Recovery::open(&disk, Path::new("x"), OnDamage::Salvage).unwrap_err().to_string()
    };
    for other in [&b""[..], b"coeval", b"#!/bin/sh\nexit 0\n and more of it"] {
        assert!(refused(other).contains("x is not a journal"), "{other:?}");
    }
    drop(journal(&disk, 1, 1));
    let mut bytes = disk.bytes(Path::new(PATH)).unwrap();
    bytes[9] = 7;
    assert!(refused(&bytes).contains("format version 7, this program reads version 1"));
    assert!(Recovery::not_found(&Recovery::open(&disk, Path::new("none"), OnDamage::Refuse).unwrap_err()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever stands after the header, reading ends, with whole batches or an error.
    #[test]
    fn any_bytes_give_whole_batches_or_an_error(
        tail in prop::collection::vec(any::<u8>(), 0..400),
        keep in 0.0..1.0_f64,
    ) {
        let disk = SimDisk::new();
        drop(journal(&disk, 4, 2));
        let mut bytes = disk.bytes(Path::new(PATH)).unwrap();
        bytes.truncate((bytes.len() as f64 * keep) as usize);
        bytes.extend(tail);
        disk.put(Path::new("x"), bytes);
        if let Ok(batches) = batches(&disk, Path::new("x"), OnDamage::Salvage) {
            prop_assert!(is_prefix(&batches));
        }
    }
}

fn wait_for(scribe: &Scribe, mut done: impl FnMut(&Report) -> bool) -> Vec<Report> {
    let (start, mut reports) = (Instant::now(), Vec::new());
    loop {
        assert!(start.elapsed() < Duration::from_secs(20), "no such report: {reports:?}");
        let Some(report) = scribe.poll() else {
            std::thread::sleep(Duration::from_millis(1));
            continue;
        };
        let last = done(&report);
        reports.push(report);
        if last {
            return reports;
        }
    }
}

/// On a real disk, with each policy: what is asked for is told to be durable, and is there.
#[test]
fn the_thread_writes_syncs_and_tells() {
    let folder = tempfile::tempdir().unwrap();
    // `Every` an hour: only who asks is served.
    for policy in [SyncPolicy::EveryMark, SyncPolicy::Every(Duration::from_secs(3600)), SyncPolicy::Never] {
        let path = folder.path().join(format!("{policy:?}").replace(['(', ')', ' '], ""));
        let lock = Lock::take(&path).unwrap();
        let writer = Writer::new(FileDisk, &path, &header()).unwrap();
        let scribe = Scribe::start(writer, policy, Some(lock), || ()).unwrap();
        for n in 1..=50_u64 {
            for mark in [None, None, Some(n)] {
                scribe.append(1, mark, n.to_be_bytes().to_vec().into());
            }
        }
        scribe.sync();
        let reports = wait_for(&scribe, |report| matches!(report, Report::Durable { file: 1, mark: 50 }));
        let written: usize =
            reports.iter().map(|r| if let Report::Written { bytes, .. } = r { *bytes } else { 0 }).sum();
        assert_eq!(written, 50 * 3 * 8);
        assert_eq!(batches(&FileDisk, &path, OnDamage::Refuse).unwrap().len(), 50);
        assert!(matches!(Lock::take(&path), Err(JournalError::InUse { .. })), "two on one journal");
        drop(scribe);
        assert!(Recovery::open(&FileDisk, &path, OnDamage::Refuse).unwrap().closed);
        Lock::take(&path).expect("free again");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "it holds secrets");
        }
    }
}

/// Nothing is asked for: `Every` syncs by itself.
#[test]
fn every_syncs_by_itself_when_its_time_is_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("j");
    let writer = Writer::new(FileDisk, &path, &header()).unwrap();
    let scribe = Scribe::start(writer, SyncPolicy::Every(Duration::from_millis(5)), None, || ()).unwrap();
    for n in 1..=2_u64 {
        scribe.append(1, Some(n), n.to_be_bytes().to_vec().into());
        wait_for(&scribe, |report| matches!(report, Report::Durable { mark, .. } if *mark == n));
    }
}

/// A place that cannot be written is told once, and the thread goes on.
#[test]
fn a_folder_that_is_not_there_is_told() {
    let writer = Writer::new(FileDisk, Path::new("/nowhere/at/all"), &header()).unwrap();
    let scribe = Scribe::start(writer, SyncPolicy::EveryMark, None, || ()).unwrap();
    scribe.append(1, Some(1), vec![1].into());
    let reports = wait_for(&scribe, |report| matches!(report, Report::Failed { .. }));
    let Some(Report::Failed { error, .. }) = reports.last() else { panic!("not told") };
    assert!(error.to_string().contains("cannot create the journal /nowhere/at/all"), "{error}");
}
