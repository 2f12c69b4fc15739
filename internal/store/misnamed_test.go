package store

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"bellwether/wire"
)

// oddNames are names, without the prefix, that an operator may give to a file of the history.
var oddNames = []string{
	"0", "1", "2", "3d", "50", "94", "96", "a0", "a1", "a2", "b", "fffff", "FFFFF", "00000fffff", "0096", "+96", "-1",
	"100000000", "100000001", "1000000ff", "7fffffff00000000", "7fffffffffffffff", "8000000000000000", "ffffffffffffffff",
	"11111111111111111111", "", "zz", "0x96", "96 ", "96.bak", "a1.bak", "fffff.bak", "fffff.gz", "fffff.snappy",
	"96.gz", "96.2.3", "96~", "9_6", "\u0663",
}

// TestRenamedFileLosesNothing: one file of a history gets another name. Then a start
// either has every transaction or is refused with an error that names a file. It never
// starts with fewer transactions and no error. Check reports the same.
func TestRenamedFileLosesNothing(t *testing.T) {
	whole, purged := diskOf(t, samples), diskOf(t, samples)
	for _, name := range []string{"snapshot.0", "snapshot.3c", "snapshot.91", "log.1", "log.3e"} {
		drop(t, purged, name)
	}
	for _, disk := range []*Mem{whole, purged} {
		for _, from := range names(t, disk) {
			for _, prefix := range []string{logPrefix, snapshotPrefix} {
				for _, odd := range oddNames {
					to := prefix + odd
					if slices.Contains(names(t, disk), to) {
						continue
					}
					m := disk.Clone(1)
					must(t, m.Rename("/data/version-2/"+from, "/data/version-2/"+to))
					_ = losesNothing(t, m, dataOptions, from+" as "+to)
				}
			}
		}
	}
}

// TestNoFileInPlaceOfOneLosesNothing: nothing is lost if something that is not a file
// replaces a file of the history, or has a similar name beside it.
func TestNoFileInPlaceOfOneLosesNothing(t *testing.T) {
	for _, kind := range []struct {
		what string
		put  func(path string) error
	}{
		{"a directory", func(path string) error { return os.Mkdir(path, 0o755) }},
		{"a socket", func(path string) error { return syscall.Mknod(path, syscall.S_IFSOCK|0o644, 0) }},
		{"a symbolic link that leads to nothing", func(path string) error { return os.Symlink("nowhere", path) }},
		{"a named pipe", func(path string) error { return syscall.Mknod(path, syscall.S_IFIFO|0o644, 0) }},
	} {
		for _, name := range append(names(t, diskOf(t, samples)), "log.fffff", "snapshot.fffff") {
			base := realSample(t)
			path := filepath.Join(base, "version-2", name)
			if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			must(t, kind.put(path))
			err := losesNothing(t, OS(), Options{DataDir: base, PreallocBytes: -1}, kind.what+" as "+name)
			if strings.HasSuffix(name, ".fffff") && (err == nil || !strings.Contains(err.Error(), kind.what)) {
				t.Errorf("%s as %s: %v", kind.what, name, err)
			}
		}
	}
}

// TestStrayBetweenTwoEpochsLosesNothing: a log that is a dangling link or has a wrong
// name can contain the transactions between two epochs of the readable logs. Then, too,
// the start is refused.
func TestStrayBetweenTwoEpochsLosesNothing(t *testing.T) {
	changes := map[string]func(path string) error{
		"log.100000006":     func(path string) error { return errors.Join(os.Remove(path), os.Symlink("nowhere", path)) },
		"log.100000006.bak": func(path string) error { return os.Rename(strings.TrimSuffix(path, ".bak"), path) },
	}
	for name, replace := range changes {
		m := NewMem(1)
		must(t, m.MkdirAll("/data/version-2"))
		claimed{0, 0, 0, 0}.write(t, m)
		for _, l := range []logged{{at(1, 1), at(1, 5), true}, {at(1, 6), at(1, 9), true}, {at(2, 1), at(2, 3), true}} {
			l.write(t, m)
		}
		base := t.TempDir()
		must(t, os.Mkdir(filepath.Join(base, versionDir), 0o755))
		for _, file := range names(t, m) {
			must(t, os.WriteFile(filepath.Join(base, versionDir, file), read(t, m, "/data/version-2/"+file), 0o644))
		}
		o := Options{DataDir: base, PreallocBytes: -1}
		if res, err := loadInto(OS(), o, Discard{}); err != nil || res.LastZxid != at(2, 3) {
			t.Fatalf("%s: the whole history ends at %v (%v)", name, res.LastZxid, err)
		}
		must(t, replace(filepath.Join(base, versionDir, name)))
		report, err := Check(OS(), o)
		must(t, err)
		_, err = loadInto(OS(), o, Discard{})
		var damage *DamageError
		if !errors.As(err, &damage) || filepath.Base(damage.File) != name || report.LastZxid >= 0 {
			t.Errorf("%s: a start says %v, data check %v %v", name, err, report.LastZxid, report.Damage)
		}
	}
}

// TestLinkedLogIsRead: a symbolic link to a file is read like the file, as in ZooKeeper.
func TestLinkedLogIsRead(t *testing.T) {
	base := realSample(t)
	must(t, os.Mkdir(filepath.Join(base, "elsewhere"), 0o755))
	for _, name := range []string{"log.3e", "log.96", "snapshot.95"} {
		must(t, os.Rename(filepath.Join(base, "version-2", name), filepath.Join(base, "elsewhere", name)))
		must(t, os.Symlink("../elsewhere/"+name, filepath.Join(base, "version-2", name)))
	}
	must(t, losesNothing(t, OS(), Options{DataDir: base, PreallocBytes: -1}, "links"))
}

const sampleEnd = 0xa1

// realSample copies the sample directory.
func realSample(t *testing.T) string {
	t.Helper()
	base := t.TempDir()
	must(t, os.CopyFS(base, os.DirFS(samples)))
	return base
}

// losesNothing loads the sample's history. It returns the error if the start is refused,
// and fails if a transaction is missing.
func losesNothing(t *testing.T, fs FS, o Options, what string) error {
	t.Helper()
	report, err := Check(fs, o)
	if err != nil {
		t.Errorf("%s: data check: %v", what, err)
		return err
	}
	var tree copyTree
	res, err := loadInto(fs, o, &tree)
	switch {
	case err != nil && (len(report.Damage) == 0 || report.LastZxid >= 0 || !strings.Contains(err.Error(), "/version-2/")):
		t.Errorf("%s: a start says %v, and data check %v, %v", what, err, report.LastZxid, report.Damage)
	case err == nil && (res.LastZxid != sampleEnd || report.LastZxid != sampleEnd):
		t.Errorf("%s: the history ends at %v, for data check at %v\n%q", what, res.LastZxid, report.LastZxid, res.Notes)
	case err == nil && int(res.LastZxid-res.Snapshot) != res.Txns:
		t.Errorf("%s: %d transactions behind %v", what, res.Txns, res.Snapshot)
	}
	if err == nil {
		certain(t, fs, res, what)
	}
	return err
}

// certain checks that the loaded snapshot contains everything up to the zxid in its name, by comparing it
// with the sample's own files.
func certain(t *testing.T, fs FS, res LoadResult, what string) {
	t.Helper()
	b := read(t, fs, res.SnapshotPath)
	for _, z := range []wire.Zxid{0, 0x3c, 0x91, 0x95} {
		own, err := os.ReadFile(filepath.Join(samples, versionDir, snapshotName(z, Plain)))
		must(t, err)
		if bytes.Equal(b, own) && res.Snapshot <= z {
			return
		}
	}
	t.Errorf("%s: the start used %s as %v", what, res.SnapshotPath, res.Snapshot)
}
