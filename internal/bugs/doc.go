// Package bugs shows that the tests can fail. It contains only tests. For each known bug of
// ZooKeeper-like systems that this design could have, there is a named scenario, a test of
// the package concerned. For most of them, a patch in testdata brings the bug back. The
// tests build the package with the patch and require that the scenario fails. The code of
// the program needs no hook for that.
//
// The data is in table_test.go; docs/testing.md shows it as a table. A patch is a short
// text. Lines that begin with # are the description. A line "--- file" names a file of the
// module. "@@" begins an edit. The lines of an edit begin with a blank (unchanged), -
// (removed) or + (added). The unchanged and removed lines must be in the file exactly once.
// If they are not, the test fails and prints the command that adapts the patches to the
// current code (carry_test.go). A patch that the command cannot merge must be rewritten by
// hand.
package bugs
