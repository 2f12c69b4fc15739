// Package shell contains the client commands: the data commands, status, bench, and the
// recipes as commands. Each is a cobra command over package zk or recipe. The data commands
// use the words and options of ZooKeeper's own CLI if it has them.
//
// [Commands] returns the commands; cmd/bellwether adds them to its root command, together
// with the server's commands. Output is for people unless -o json is given. A command
// returns an error: a [StatusError] gives the exit status, and any other error means
// failure.
//
// elect, lock, semaphore, barrier enter and queue pop run a command while they hold a
// claim. They share the type runner: runner.go obtains the claim, and lead.go, with package
// guard, makes sure that the command does not run longer than the claim is held. recipes
// and kick inspect and delete claims of other clients, with package claim.
//
// [NewShell] is the interactive shell, which also reads scripts: session.go is its session,
// loop.go reads and executes lines, builtin.go has the commands that only it has, events.go prints what happens meanwhile.
// It builds the same commands anew for each line; their app then has the session of the shell. While the shell waits for a
// line, one goroutine prints events (events.listen).
//
// No goroutine outlives the command that started it. Read app.go first.
package shell
