package bench

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"time"
)

// TestFullDisk shows that Save reports a full disk and leaves no damaged file.
func TestFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files, err := CreateFiles(dir, "read", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	files.files[".hlog"].Close()
	files.files[".hlog"] = full
	if err := files.Save(NewResult(time.Now(), someReports()), someReports()); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Save: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v, %d files are left", err, len(left))
	}
}
