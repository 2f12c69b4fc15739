// Package shell is the command tree of the client side: the one-shot data
// commands, status, bench, and the recipes as commands, each a cobra command
// over package zk or recipe. The words and options of the data commands are those of ZooKeeper's
// own CLI where it has them.
//
// [Commands] returns the commands; cmd/bellwether hangs them below its root
// beside the server's. Output goes to people unless -o json is given. A
// command returns an error; a [StatusError] says which exit status it stands
// for, any other one is a failure.
//
// What elect, lock, semaphore, barrier enter and queue pop have in common, a
// command that runs while a claim stands, is the runner: runner.go says how a
// claim is obtained, lead.go how the command is kept from outliving it, under
// package guard. recipes and kick look at claims from outside, by package
// claim.
//
// No goroutine outlives the command that started it. Read app.go first.
package shell
