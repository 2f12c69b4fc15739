// Package audit writes the audit log: one record for each change that a client made or
// tried to make, and for each ephemeral znode that ended with its session.
//
// A [Record] is one entry. [Record.AppendText] gives the line of Apache ZooKeeper's audit
// log, [Record.AppendJSON] the same fields as JSON. A [Log] writes records to a file and
// never makes its caller wait: formatted records go through a bounded buffer to one
// goroutine, which owns the file. A disk that fails or hangs costs records, never service.
// The Log counts the lost records, reports the loss in the server's log, and writes a
// record with their number in front of the next record that reaches the file.
//
// The package does not decide what is recorded; internal/server does. Read record.go first.
package audit
