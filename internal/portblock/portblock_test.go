package portblock

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestBlocks shows that two processes never find the same port, and that one process finds
// many ports before it finds one again.
func TestBlocks(t *testing.T) {
	const n = portsPerBlock / 2 // other processes may listen on some ports of the block
	ports, err := Free("127.0.0.1", n)
	if err != nil {
		t.Fatal(err)
	}
	if len(slices.Compact(slices.Sorted(slices.Values(ports)))) != n {
		t.Fatalf("a port was found twice among %v", ports)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestPortblockProcess$")
	cmd.Env = append(os.Environ(), "PORTBLOCK_OTHER=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	other, err := strconv.Atoi(line)
	if err != nil || other >= block.start && other < block.start+portsPerBlock {
		t.Fatalf("the other process found %q, %v; this one has %d to %d", line, err, block.start, block.start+portsPerBlock-1)
	}
}

// TestPortblockProcess is the other process of TestBlocks. Run directly, it prints the port it found.
func TestPortblockProcess(t *testing.T) {
	ports, err := Free("127.0.0.1", 1)
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("PORTBLOCK_OTHER") != "" {
		os.Stdout.WriteString(strconv.Itoa(ports[0]) + "\n")
	}
}

// TestBlocksLieOutside shows that no block contains a port that the system assigns itself.
func TestBlocksLieOutside(t *testing.T) {
	for _, c := range []struct{ low, high, first, n int }{
		{32768, 60999, 10_000, 45 + 9}, // blocks up to port 32499, and from 61000 on
		{32768, 65535, 10_000, 45},
		{15001, 65535, 10_000, 10},
		{14999, 65535, 10_000, 9},
		{1024, 60999, 61_000, 9},
		{1024, 61000, 61_500, 8},
		{1024, 65535, 0, 0},
	} {
		got := blocks(c.low, c.high)
		for _, start := range got {
			if start+portsPerBlock > c.low && start <= c.high {
				t.Errorf("the system assigns ports %d to %d, but a block begins at %d", c.low, c.high, start)
			}
		}
		if len(got) != c.n || c.n > 0 && got[0] != c.first {
			t.Errorf("without %d to %d: blocks %v, want %d from %d on", c.low, c.high, got, c.n, c.first)
		}
	}
}
