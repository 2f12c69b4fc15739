// Package bugs shows that the tests can fail. It contains only tests. For each known bug of
// ZooKeeper-like systems that this design could have, there is a named scenario, a test of
// the package concerned. For most of them, a patch in testdata brings the bug back. The
// tests build the package with the patch and require that the scenario fails. The code of
// the program needs no hook for that.
//
// The data is in table_test.go; docs/testing.md shows it as a table. internal/patch describes
// the form of a patch. If the lines that a patch quotes have changed, the test fails and
// prints the command that brings the patches forward (carry_test.go). A patch that the
// command cannot merge must be rewritten by hand.
package bugs
