package bench

import (
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test binary also act as the process that echoes.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "echo" {
		request, _ := strconv.Atoi(os.Args[2])
		reply, _ := strconv.Atoi(os.Args[3])
		if err := Echo(request, reply, os.Stdout, os.Stdin); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// TestCeiling shows that each measurement counts operations, also with several
// requests in flight, and that nothing is left. A machine need not pause.
func TestCeiling(t *testing.T) {
	dir := t.TempDir()
	c := Ceiling{
		Echo: func(request, reply int) *exec.Cmd {
			return exec.Command(os.Args[0], "echo", strconv.Itoa(request), strconv.Itoa(reply))
		},
		Connections: 3, Outstanding: 5, Size: 100, Batch: 10, Dir: dir, Warmup: time.Millisecond, Duration: 50 * time.Millisecond,
	}
	reports, err := c.Run(t.Context())
	if err != nil || len(reports) != 5 {
		t.Fatalf("%d reports, %v", len(reports), err)
	}
	for _, r := range reports[:4] {
		if r.Operations < 1 || r.Max <= 0 || r.ClientCPU < 0 {
			t.Errorf("%+v", r)
		}
	}
	if reports[3].Operations%10 != 0 {
		t.Errorf("%d transactions in batches of 10", reports[3].Operations)
	}
	if text := reports[4].String(); !strings.HasPrefix(text, "ceiling: pauses of the machine: ") || !strings.Contains(text, "% of the time") {
		t.Error(text)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v, %d files are left", err, len(left))
	}
}

// TestFramesAreThoseOfTheProtocol compares the lengths of the frames with the known ones.
func TestFramesAreThoseOfTheProtocol(t *testing.T) {
	read, write := readFrames(100), writeFrames(100)
	for _, c := range []struct {
		what      string
		got, want int
	}{
		{"getData", len(read.request), 4 + 8 + 4 + len(ceilingPath) + 1},
		{"its reply", len(read.reply), 4 + 16 + 4 + 100 + 68},
		{"setData", len(write.request), 4 + 8 + 4 + len(ceilingPath) + 4 + 100 + 4},
		{"its reply", len(write.reply), 4 + 16 + 68},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d bytes, want %d", c.what, c.got, c.want)
		}
	}
}

// TestEchoEndsWithInput shows that the process that echoes ends when its parent has ended.
func TestEchoEndsWithInput(t *testing.T) {
	in, parent := io.Pipe()
	started, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- Echo(1, 1, writerFunc(func() { close(started) }), in) }()
	<-started
	parent.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

type writerFunc func()

func (f writerFunc) Write(p []byte) (int, error) {
	f()
	return len(p), nil
}

// TestPausesOfAllLoops shows that only those times count in which no loop ran.
func TestPausesOfAllLoops(t *testing.T) {
	ms := time.Millisecond
	loops := []*watchedLoop{
		{pauses: []pause{{1 * ms, 3 * ms}, {10 * ms, 20 * ms}, {30 * ms, 40 * ms}}},
		{pauses: []pause{{4 * ms, 6 * ms}, {12 * ms, 14 * ms}, {15 * ms, 33 * ms}}},
		{pauses: []pause{{0, 50 * ms}}},
	}
	want := []pause{{12 * ms, 14 * ms}, {15 * ms, 20 * ms}, {30 * ms, 33 * ms}}
	if got := common(loops); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
