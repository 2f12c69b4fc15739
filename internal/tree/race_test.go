//go:build race

package tree

import "flag"

// Under the race detector the random tests are ten times as slow, so they run fewer
// cases. Without it they run all cases; that is enough, because only the tests with
// readers use several goroutines.
func init() { flag.Set("rapid.checks", "20") }
