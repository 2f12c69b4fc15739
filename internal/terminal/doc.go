// Package terminal contains what the commands show at a terminal, and read from one.
//
//   - [Words] splits a command line; [History] keeps the lines of a shell in a file.
//   - [Editor] reads a line with completion and history; events can be printed meanwhile.
//   - [Screen] shows a text that changes, and reads keys.
//   - [Bar] shows how far a long command is.
//
// It knows nothing of ZooKeeper. An Editor and a Screen have one user at a time; only
// Editor.Print may be called from any goroutine. A Screen has one goroutine, which reads keys
// until Close. Read editor.go first.
package terminal
