// Package store keeps a server's history on disk, in the files of Apache
// ZooKeeper 3.8 and 3.9: transaction logs, snapshots (plain, gzip, snappy)
// and the epoch files. A directory written by either opens with the other.
//
// A [Store] is opened over an [FS], which is the operating system's in
// production and in tests a memory twin that forgets what was not synced.
// Load hands the newest sound snapshot and every transaction behind it to a
// [Sink]; Append and Sync write the log; WriteSnapshot takes a [Source];
// Purge, Truncate and the epochs complete it. Check reads a directory
// without changing it and reports all damage, each with file and offset.
//
// What a crash can leave behind is mended at the next open by itself; damage
// that no crash causes is reported as [*DamageError] and never skipped.
// After a failed sync the store is poisoned: every later call returns the
// first error, and the descriptor is never synced again.
//
// The package knows files, not meaning: it applies nothing and decides
// nothing about epochs or elections. It starts no goroutine. A Store is used
// by one goroutine at a time, except that WriteSnapshot, Purge, ReadLog and
// Sizes may run beside Append and Sync; the one mutex guards what those share
// and is never held across a call of the file system. Read log.go first, then
// tear.go, which tells what a crash can do from what it cannot.
package store
