// Package audit writes the audit log: one record for each change that a client made or
// tried to make, and for each ephemeral znode that ended with its session.
//
// A [Record] is one entry. [Record.AppendText] gives the line of Apache ZooKeeper's audit
// log, [Record.AppendJSON] the same fields as JSON. A [Log] writes records to a file and
// never makes its caller wait: formatted records go through a bounded buffer to one
// goroutine, which owns the file. Records wait while a disk fails or hangs; when the buffer
// is full, further records are lost, and the server continues. The Log counts the lost records,
// reports the loss in the server's log, and writes a record with their number after the
// records that waited.
//
// The package does not decide what is recorded; internal/server does. Read record.go first.
package audit
