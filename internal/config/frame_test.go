package config

import (
	"os"
	"path/filepath"
	"testing"
)

// TestFrameIsBoundedByTheLog shows that jute.maxbuffer cannot exceed what a log record can
// hold: otherwise one client's request could stop the server.
func TestFrameIsBoundedByTheLog(t *testing.T) {
	file := filepath.Join(t.TempDir(), "zoo.cfg")
	if err := os.WriteFile(file, []byte("dataDir=data\ntickTime=2000\nclientPort=2181\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if c, err := Load(file, "-Djute.maxbuffer=33554432"); err != nil || c.Limits.FrameBytes != 32<<20 {
		t.Errorf("32 MiB: %v", err)
	}
	if _, err := Load(file, "-Djute.maxbuffer=33554433"); err == nil {
		t.Error("one byte more is accepted")
	}
}
