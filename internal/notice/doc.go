// Package notice logs what others do wrong without letting them fill the log.
//
// A [Log] writes a message the first time, counts its repetitions, and writes
// their number and the last address in a summary from time to time. It holds
// a bounded number of kinds of messages and of addresses for each.
//
// A Log starts no goroutine of its own. Its summaries run on timers, which
// Close stops. One lock guards all state; it is not held while logging.
package notice
