// Package transcript runs the transcripts that test the pure packages. A transcript is a
// file testdata/*.txt: commands, each on a line that begins with >, and below each command
// its output. A change of behaviour shows as a changed transcript, which is reviewed as
// prose.
//
// Only tests import this package. Regenerate with go test PACKAGE -run Transcripts -update.
package transcript

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the transcripts")

// Play runs each transcript of the calling package as a subtest. start begins a transcript.
// It returns the function that carries out a command, given as words, and writes the
// output to out. Play copies comments (#) and blank lines.
func Play(t *testing.T, start func(t *testing.T, out *bytes.Buffer) (command func(words []string))) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts in testdata", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := run(string(want), func(out *bytes.Buffer) func([]string) { return start(t, out) })
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			} else if !bytes.Equal(got, want) {
				t.Errorf("the output differs from the transcript; review it with -update and git diff:\n%s", got)
			}
		})
	}
}

// run returns a transcript with the present output of its commands.
func run(text string, start func(out *bytes.Buffer) (command func(words []string))) []byte {
	var out bytes.Buffer
	command := start(&out)
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, ">"):
			out.WriteString(line)
			command(strings.Fields(line[1:]))
		case strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "":
			out.WriteString(line)
		}
	}
	return out.Bytes()
}

// Match compares a text with the one that a file of testdata has.
func Match(t *testing.T, file string, got []byte) {
	t.Helper()
	file = filepath.Join("testdata", file)
	if *update {
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, got, 0o644)); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		was, is := strings.Split(string(want), "\n"), strings.Split(string(got), "\n")
		n := 0
		for n < min(len(was), len(is)) && was[n] == is[n] {
			n++
		}
		t.Errorf("%s: from line %d on:\n%s\nnot:\n%s\nreview it with -update and git diff", file, n+1,
			strings.Join(is[max(0, n-5):min(len(is), n+5)], "\n"), strings.Join(was[n:min(len(was), n+5)], "\n"))
	}
}
