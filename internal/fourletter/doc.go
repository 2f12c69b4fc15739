// Package fourletter sends four-letter words to servers and parses their answers. [Ask] sends
// a word. [ParseSrvr], [ParseMntr], [ParseDirs] and [ParseElog] read the answers of Bellwether and
// of Apache ZooKeeper. The commands of the shell and the page of the admin port use this package;
// package admin builds the answers.
//
// Answers come from other machines. They are read up to a limit, and control characters in
// their values are replaced, because the values are shown on terminals.
//
// The package starts no goroutine. Read srvr.go first.
package fourletter
