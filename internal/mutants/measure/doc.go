// Package measure finds out which tests kill the mutants of package mutants. Each mutant is
// built from the module's files and an overlay, so that no file of the module changes.
//
// A [Runner] judges mutants: by the unit tests of their package and of its users (unit.go), of
// which the fast ones run first (groups.go), and by the simulator (simulate.go). Results are appended to a file, each as soon as it is
// known. A result is taken over in a later run if everything that its hash covers is
// unchanged. The hash of a unit score covers the changed files, and all files of the
// packages whose tests judge the mutant. That of a simulator score covers the changed files,
// and the Go files of its package and of the simulator, without tests. Changes of other
// packages do not count, so now and then all results should be measured anew.
//
// A Runner has one goroutine for each job; a mutex guards the file of results. Read run.go
// first.
package measure
