// Package patch reads, writes and applies small changes of the program as text. Tests use
// them to show that the program's tests can fail: the known bugs of internal/bugs, and the
// semantic mutants of internal/mutants. Read patch.go first.
//
// Lines that begin with # are the description. A line "--- file" names a file of the
// module. "@@" begins an edit. The lines of an edit begin with a blank (unchanged), -
// (removed) or + (added). The unchanged and removed lines must be in the file exactly once. A [Carrier]
// brings a patch forward whose lines have changed since it was written.
package patch
