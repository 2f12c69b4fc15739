//go:build race

package tree

import "flag"

// The room has one goroutine but where readers come in: what it does by itself
// is looked at without the race detector, which makes it ten times as slow;
// here in fewer stories.
func init() { flag.Set("rapid.checks", "20") }
