// Package shell is the command tree of the client side: the one-shot data
// commands, status, elect and bench, each a cobra command over package zk or
// recipe. The words and options of the data commands are those of ZooKeeper's
// own CLI where it has them.
//
// [Commands] returns the commands; cmd/bellwether hangs them below its root
// beside the server's. Output goes to people unless -o json is given. A
// command returns an error; a [StatusError] says which exit status it stands
// for, any other one is a failure.
//
// No goroutine outlives the command that started it. Read app.go first.
package shell
