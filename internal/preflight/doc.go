// Package preflight finds what prevents Bellwether from taking over a ZooKeeper server or ensemble.
//
// Settings judges a zoo.cfg and the flags of the Java virtual machine, ReadData and Data.Judge a data
// directory, Ask and Live.Judge the running servers, Belongs whether the data are those of the running
// server. Each returns Findings; a Report holds all of them and says yes, no, or that it could not look.
//
// The package changes nothing. It reads the data directory through a file system that refuses every
// change, also while a server writes there: what is damaged only in one of two readings was being
// written. It asks running servers only four-letter words, over connections that the caller opens, and
// so needs no session.
//
// Ask has one goroutine for each server and waits for all of them. Read report.go first.
package preflight
