//! The file system for SQLite, which forwards each call to the disk that is mounted at the path. Only this file of the
//! crate has unsafe code, because SQLite calls it from C.

#![allow(unsafe_code, reason = "SQLite is given pointers and gives some")]

use crate::disk::{Code, Disk, Handle, Lie};
use rusqlite::ffi;
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ops::Bound;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, Once, PoisonError};

/// The mounted disks by the path of their database.
static MOUNTED: Mutex<BTreeMap<String, Arc<Disk>>> = Mutex::new(BTreeMap::new());

/// Mounts a disk at a path until it is dropped. Open files keep the disk.
pub struct Mount(String);

impl Mount {
    /// Mounts a disk. All databases of this process must be on mounted disks, because other paths cannot be opened.
    pub fn new(path: &str, disk: Arc<Disk>) -> Self {
        static REGISTERED: Once = Once::new();
        REGISTERED.call_once(register);
        MOUNTED.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned(), disk);
        Self(path.to_owned())
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        MOUNTED.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
    }
}

/// Returns the disk of a path, and the suffix after the name of the database.
fn find(path: &str) -> Option<(Arc<Disk>, &str)> {
    let mounted = MOUNTED.lock().unwrap_or_else(PoisonError::into_inner);
    let (database, disk) = mounted.range::<str, _>((Bound::Unbounded, Bound::Included(path))).next_back()?;
    Some((Arc::clone(disk), path.strip_prefix(database.as_str())?))
}

/// An open file, as SQLite allocates it.
#[repr(C)]
struct File {
    methods: ffi::sqlite3_file,
    opened: *mut Opened,
}

struct Opened {
    disk: Arc<Disk>,
    handle: Handle,
}

static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 2, // without memory-mapped files: the store sets `mmap_size = 0`
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(is_reserved),
    xFileControl: Some(control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(characteristics),
    xShmMap: Some(map),
    xShmLock: Some(lock_shared),
    xShmBarrier: Some(barrier),
    xShmUnmap: Some(unmap),
    xFetch: None,
    xUnfetch: None,
};

fn register() {
    // SAFETY: SQLite uses the pointer until the process ends, and the box is leaked. Time and randomness are those of
    // the previous default file system.
    unsafe {
        let usual = ffi::sqlite3_vfs_find(std::ptr::null());
        assert!(!usual.is_null(), "SQLite has a file system");
        let vfs = Box::leak(Box::new(ffi::sqlite3_vfs {
            iVersion: 2,
            szOsFile: c_int::try_from(size_of::<File>()).unwrap_or(c_int::MAX),
            mxPathname: 512,
            pNext: null_mut(),
            zName: c"simulated".as_ptr(),
            pAppData: null_mut(),
            xOpen: Some(open),
            xDelete: Some(delete),
            xAccess: Some(access),
            xFullPathname: Some(full_path),
            xDlOpen: None,
            xDlError: None,
            xDlSym: None,
            xDlClose: None,
            xRandomness: (*usual).xRandomness,
            xSleep: (*usual).xSleep,
            xCurrentTime: (*usual).xCurrentTime,
            xGetLastError: None,
            xCurrentTimeInt64: (*usual).xCurrentTimeInt64,
            xSetSystemCall: None,
            xGetSystemCall: None,
            xNextSystemCall: None,
        }));
        assert_eq!(ffi::sqlite3_vfs_register(vfs, 1), ffi::SQLITE_OK, "the file system is registered");
    }
}

fn code(result: Result<(), Code>) -> Code {
    result.err().unwrap_or(ffi::SQLITE_OK)
}

/// Converts a size or an offset of SQLite.
fn number(value: impl TryInto<usize>) -> Result<usize, Code> {
    value.try_into().map_err(|_| ffi::SQLITE_IOERR)
}

/// SAFETY: SQLite passes a file that `open` has initialized, from one thread at a time.
unsafe fn opened<'a>(file: *mut ffi::sqlite3_file) -> &'a mut Opened {
    unsafe { &mut *(*file.cast::<File>()).opened }
}

/// SAFETY: SQLite passes a string that outlives the call.
unsafe fn text<'a>(name: *const c_char) -> Option<&'a str> {
    if name.is_null() { None } else { unsafe { CStr::from_ptr(name) }.to_str().ok() }
}

unsafe extern "C" fn open(
    _: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    unsafe {
        (*file).pMethods = std::ptr::null();
        let found = text(name).and_then(find);
        let create = flags & ffi::SQLITE_OPEN_CREATE != 0;
        // As in the file system for Unix: the first sync of a log that may be new also syncs its directory.
        let kinds = ffi::SQLITE_OPEN_WAL | ffi::SQLITE_OPEN_MAIN_JOURNAL | ffi::SQLITE_OPEN_SUPER_JOURNAL;
        let (disk, suffix) = match (found, name.is_null()) {
            (Some((disk, suffix)), _) => (disk, Some(suffix)),
            (None, true) => (Arc::new(Disk::empty(Lie::None)), None),
            (None, false) => return ffi::SQLITE_CANTOPEN,
        };
        match disk.open(suffix, create, create && flags & kinds != 0) {
            Ok(handle) => {
                if !out_flags.is_null() {
                    *out_flags = flags;
                }
                let opened = Box::into_raw(Box::new(Opened { disk, handle }));
                file.cast::<File>().write(File { methods: ffi::sqlite3_file { pMethods: &raw const METHODS }, opened });
                ffi::SQLITE_OK
            }
            Err(code) => code,
        }
    }
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    unsafe {
        let Opened { disk, handle } = *Box::from_raw((*file.cast::<File>()).opened);
        (*file).pMethods = std::ptr::null();
        code(disk.unlock(&handle, ffi::SQLITE_LOCK_NONE))
    }
}

unsafe extern "C" fn delete(_: *mut ffi::sqlite3_vfs, name: *const c_char, sync_directory: c_int) -> c_int {
    match unsafe { text(name) }.and_then(find) {
        Some((disk, suffix)) => code(disk.delete(suffix, sync_directory != 0)),
        None => ffi::SQLITE_IOERR_DELETE_NOENT,
    }
}

unsafe extern "C" fn access(_: *mut ffi::sqlite3_vfs, name: *const c_char, _: c_int, out: *mut c_int) -> c_int {
    unsafe { *out = c_int::from(text(name).and_then(find).is_some_and(|(disk, suffix)| disk.exists(suffix))) };
    ffi::SQLITE_OK
}

unsafe extern "C" fn full_path(_: *mut ffi::sqlite3_vfs, name: *const c_char, room: c_int, out: *mut c_char) -> c_int {
    unsafe {
        let bytes = CStr::from_ptr(name).to_bytes_with_nul();
        if bytes.len() > usize::try_from(room).unwrap_or(0) {
            return ffi::SQLITE_CANTOPEN;
        }
        out.copy_from_nonoverlapping(bytes.as_ptr().cast(), bytes.len());
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn read(
    file: *mut ffi::sqlite3_file,
    into: *mut c_void,
    length: c_int,
    offset: ffi::sqlite3_int64,
) -> c_int {
    let (Ok(length), Ok(offset)) = (number(length), number(offset)) else { return ffi::SQLITE_IOERR_READ };
    let Opened { disk, handle } = unsafe { opened(file) };
    let into = unsafe {
        // Bytes after the end of the file are zeros.
        into.write_bytes(0, length);
        std::slice::from_raw_parts_mut(into.cast::<u8>(), length)
    };
    match disk.read(handle, offset, into) {
        Ok(read) if read == length => ffi::SQLITE_OK,
        Ok(_) => ffi::SQLITE_IOERR_SHORT_READ,
        Err(code) => code,
    }
}

unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    from: *const c_void,
    length: c_int,
    offset: ffi::sqlite3_int64,
) -> c_int {
    let (Ok(length), Ok(offset)) = (number(length), number(offset)) else { return ffi::SQLITE_IOERR_WRITE };
    let Opened { disk, handle } = unsafe { opened(file) };
    let bytes = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), length) };
    code(disk.write(handle, offset, bytes))
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, size: ffi::sqlite3_int64) -> c_int {
    let Opened { disk, handle } = unsafe { opened(file) };
    code(number(size).and_then(|size| disk.resize(handle, size)))
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, _: c_int) -> c_int {
    let Opened { disk, handle } = unsafe { opened(file) };
    code(disk.sync(handle))
}

unsafe extern "C" fn size(file: *mut ffi::sqlite3_file, out: *mut ffi::sqlite3_int64) -> c_int {
    let Opened { disk, handle } = unsafe { opened(file) };
    let found = disk.size(handle).and_then(|size| size.try_into().map_err(|_| ffi::SQLITE_IOERR_FSTAT));
    code(found.map(|size| unsafe { *out = size }))
}

unsafe extern "C" fn lock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    let Opened { disk, handle } = unsafe { opened(file) };
    code(disk.lock(handle, level))
}

unsafe extern "C" fn unlock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    let Opened { disk, handle } = unsafe { opened(file) };
    code(disk.unlock(handle, level))
}

unsafe extern "C" fn is_reserved(file: *mut ffi::sqlite3_file, out: *mut c_int) -> c_int {
    let Opened { disk, handle } = unsafe { opened(file) };
    code(disk.is_reserved(handle).map(|reserved| unsafe { *out = c_int::from(reserved) }))
}

unsafe extern "C" fn control(file: *mut ffi::sqlite3_file, what: c_int, with: *mut c_void) -> c_int {
    let Opened { disk, .. } = unsafe { opened(file) };
    match what {
        ffi::SQLITE_FCNTL_MMAP_SIZE => {
            unsafe { *with.cast::<ffi::sqlite3_int64>() = 0 };
            ffi::SQLITE_OK
        }
        ffi::SQLITE_FCNTL_PRAGMA if disk.lie() == Lie::Synchronous => {
            // SAFETY: SQLite passes three strings: the result, the name of the pragma, and its value or null. The value
            // is SQLite's own copy, so a shorter value can overwrite it. SQLite frees the result.
            unsafe {
                let [answer, name, value] = &mut *with.cast::<[*mut c_char; 3]>();
                if text(*name) != Some("synchronous") {
                    return ffi::SQLITE_NOTFOUND;
                }
                if value.is_null() {
                    *answer = ffi::sqlite3_mprintf(c"2".as_ptr());
                    return ffi::SQLITE_OK;
                }
                if text(*value) == Some("FULL") {
                    value.copy_from_nonoverlapping(c"OFF".as_ptr(), 4);
                }
            }
            ffi::SQLITE_NOTFOUND
        }
        _ => ffi::SQLITE_NOTFOUND,
    }
}

/// Same value as the file system for Unix.
unsafe extern "C" fn sector_size(_: *mut ffi::sqlite3_file) -> c_int {
    4_096
}

/// Same value as the file system for Unix.
unsafe extern "C" fn characteristics(_: *mut ffi::sqlite3_file) -> c_int {
    ffi::SQLITE_IOCAP_POWERSAFE_OVERWRITE | ffi::SQLITE_IOCAP_SUBPAGE_READ
}

unsafe extern "C" fn map(
    file: *mut ffi::sqlite3_file,
    index: c_int,
    bytes: c_int,
    extend: c_int,
    out: *mut *mut c_void,
) -> c_int {
    let Opened { disk, handle } = unsafe { opened(file) };
    let (Ok(index), Ok(bytes)) = (number(index), number(bytes)) else { return ffi::SQLITE_IOERR_SHMMAP };
    // The disk keeps the region until the last connection has unmapped it.
    let found = disk.map(handle, index, bytes, extend != 0);
    code(found.map(|region| unsafe {
        *out = region.map_or(null_mut(), |region| region.first().map_or(null_mut(), |first| first.as_ptr().cast()));
    }))
}

unsafe extern "C" fn lock_shared(file: *mut ffi::sqlite3_file, offset: c_int, count: c_int, flags: c_int) -> c_int {
    let Opened { disk, handle } = unsafe { opened(file) };
    let (Ok(offset), Ok(count)) = (number(offset), number(count)) else { return ffi::SQLITE_IOERR_SHMLOCK };
    let slots = offset..offset + count;
    code(if flags & ffi::SQLITE_SHM_LOCK != 0 {
        disk.lock_shared(handle, slots, flags & ffi::SQLITE_SHM_EXCLUSIVE != 0)
    } else {
        disk.unlock_shared(handle, slots)
    })
}

unsafe extern "C" fn barrier(_: *mut ffi::sqlite3_file) {
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
}

unsafe extern "C" fn unmap(file: *mut ffi::sqlite3_file, _delete: c_int) -> c_int {
    let Opened { disk, handle } = unsafe { opened(file) };
    code(disk.unmap(handle))
}
