// Package transcript plays the conversations by which the pure rooms are
// tested: files testdata/*.txt of commands, each line beginning with >, and
// below each what it brought about. The test is the conversation; a change
// of behaviour shows as a changed conversation, to be reviewed as prose.
//
// Only tests import it. Regenerate with go test PACKAGE -run Transcripts -update.
package transcript

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the transcripts anew")

// Play runs each file of the calling package's testdata as a test of its
// own. play carries out the commands of a text and returns the text with what
// they brought about; comments (#) and blank lines it keeps.
func Play(t *testing.T, play func(t *testing.T, text string) []byte) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(want))
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			} else if !bytes.Equal(got, want) {
				t.Errorf("another conversation; review it with -update and git diff:\n%s", got)
			}
		})
	}
}
