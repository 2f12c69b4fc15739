// Package bugs proves that the checks can fail. It holds tests alone: for each
// known bug of the field that this design can have there is a named scenario
// in the room concerned, and for most of them a patch in testdata that brings
// the bug back. The tests build the room with the patch and demand that the
// scenario finds it; code that serves carries no hook for that.
//
// The data is in table_test.go; docs/testing.md shows it as a table. A patch is
// a short text: comment lines begin with #, a line "--- file" names a file
// of the module, "@@" begins a place in it, whose lines begin with a blank
// (as it is), - (taken out) or + (put in). The lines must be in the file
// exactly once. Where they are not, the test fails and says how one command brings
// the patches forward (carry_test.go); what it cannot merge is written by hand.
package bugs
