// Package mutants makes mutants: copies of the program with one small fault each. A test
// that fails with a mutant kills it. The share of mutants that are killed is the mutation
// score of the tests.
//
// There are two sets. [Generate] applies every operator to every place of a file
// (operators.go lists the operators). The semantic mutants are written by hand: each is a
// fault that a developer of such a system could make, and breaks a rule of the protocol.
// They are in testdata/semantic, one list for each package, which [ReadList] parses. A list
// consists of entries:
//
//	== name-of-the-mutant
//	# One sentence that says what the mutant breaks.
//	--- internal/zab/ping.go
//	@@
//	-	the lines as they are, which occur once in the file
//	+	the lines of the mutant
//
// internal/patch describes the form of the lines below the name. The known bugs of
// internal/bugs are not repeated in the lists.
//
// testdata/unseen.txt lists those whose fault no simulated run can show. testdata/equivalent.txt lists mutants that behave like the program, with the reason, so
// that no test can kill them. testdata/results.txt is the file of results, and
// testdata/sample.txt lists the mutants that make test checks. The package measure runs
// the tests. This package is pure: values in, values out. Read mutant.go first.
package mutants
