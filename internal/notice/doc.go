// Package notice logs the faults of clients and other servers without filling the log.
//
// A [Log] writes a message the first time and counts its repetitions. From time to
// time it writes a summary with their number and the last address. It keeps a
// bounded number of kinds of messages, and of addresses for each kind.
//
// A Log starts no goroutine of its own. Its summaries run on timers, which
// Close stops. One lock guards all state. It is not held while logging.
package notice
