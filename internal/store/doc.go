// Package store keeps a server's history on disk, in the files of Apache
// ZooKeeper 3.8 and 3.9: transaction logs, snapshots (plain, gzip, snappy)
// and the epoch files. A directory written by either opens with the other.
//
// A [Store] is opened over an [FS]: that of the operating system in production, or in
// tests one in memory, which forgets what was not made durable with fsync. Load reads the
// newest sound snapshot and every transaction after it into a [Sink]. Append and Sync
// write the log, WriteSnapshot writes a [Source]. Purge, Truncate and the epochs complete
// the store. Check reads a directory without changing it and reports all damage, each
// with file and offset.
//
// The next open repairs what a crash can leave behind. Damage that no crash causes is reported as
// [*DamageError] and never skipped. After a failed fsync the store is poisoned: every later call
// returns the first error, and the file is never fsynced again.
//
// The package knows files, not their meaning: it applies nothing and decides nothing
// about epochs or elections. It starts no goroutine. One goroutine at a time may use a
// Store, except that WriteSnapshot, Purge, ReadLog and Sizes may run concurrently with
// Append and Sync. One mutex guards what those share; it is never held during a call of
// the file system. Read log.go first, then tear.go, which distinguishes what a crash can
// cause from what it cannot.
package store
