package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// memberFiles returns the files of a server whose membership is that of version 1.
func memberFiles(t *testing.T) (*Mem, *MemberFiles) {
	m := NewMem(1)
	must(t, m.MkdirAll("/etc"))
	must(t, writeAtomic(m, "/etc/zoo.cfg.dynamic.1", "members 1"))
	must(t, writeAtomic(m, "/etc/zoo.cfg", "tickTime=1\ndynamicConfigFile=/etc/zoo.cfg.dynamic.1\n"))
	return m, &MemberFiles{FS: m, Static: "/etc/zoo.cfg", Next: "/etc/zoo.cfg.dynamic.next"}
}

// point makes a static file name the dynamic file of version 2.
func point(static string) (string, error) {
	return strings.ReplaceAll(static, "dynamic.1", "dynamic.2"), nil
}

// TestCrashWhileMembersAreSaved: a crash at each step leaves a static file that names
// a whole dynamic file, the old or the new one. Saving again finishes the work.
func TestCrashWhileMembersAreSaved(t *testing.T) {
	done := false
	for nth := 1; !done; nth++ {
		for keeping := range 3 {
			m, f := memberFiles(t)
			m.CrashAt(nth)
			err := f.SaveProposed("members 2\nversion=2")
			if err == nil {
				err = f.SaveCommitted("/etc/zoo.cfg.dynamic.2", "members 2", point, false)
			}
			done = err == nil
			if !done && !errors.Is(err, ErrCrashed) {
				t.Fatalf("step %d: %v", nth, err)
			}
			m.CancelFaults()
			m.Crash(keeping)
			static, err := f.Read("/etc/zoo.cfg")
			must(t, err)
			_, name, _ := strings.Cut(strings.TrimSpace(static), "dynamicConfigFile=")
			text, err := f.Read(name)
			if err != nil || text != "members "+name[len(name)-1:] || !strings.HasPrefix(static, "tickTime=1\n") {
				t.Fatalf("step %d: %q names %q: %v", nth, static, text, err)
			}
			if text, err := f.Read(f.Next); err == nil && text != "members 2\nversion=2" {
				t.Fatalf("step %d: proposed %q", nth, text)
			}
			if done && name[len(name)-1:] != "2" {
				t.Fatal("a saved membership is lost")
			}
			must(t, f.SaveCommitted("/etc/zoo.cfg.dynamic.2", "members 2", point, false))
			if _, err := f.Read(f.Next); !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("step %d: the proposed membership is still there: %v", nth, err)
			}
		}
	}
}

// TestProposedMembersStay: the file of a membership stays while that one is only proposed.
func TestProposedMembersStay(t *testing.T) {
	_, f := memberFiles(t)
	must(t, f.SaveProposed("members 3\nversion=3"))
	must(t, f.SaveCommitted("/etc/zoo.cfg.dynamic.2", "members 2", point, true))
	if text, err := f.Read(f.Next); err != nil || text != "members 3\nversion=3" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestBackup: the copy has the content of the static file, and a missing file is an error.
func TestBackup(t *testing.T) {
	m, f := memberFiles(t)
	must(t, f.Backup())
	was, err := f.Read("/etc/zoo.cfg")
	must(t, err)
	if copied, err := f.Read("/etc/zoo.cfg.bak"); err != nil || copied != was {
		t.Errorf("%q, %v", copied, err)
	}
	must(t, m.Remove("/etc/zoo.cfg"))
	if err := f.Backup(); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestMemberFilesKeepPermissions: the static file and its copy can be read by those who could read
// the static file before.
func TestMemberFilesKeepPermissions(t *testing.T) {
	static := filepath.Join(t.TempDir(), "zoo.cfg")
	must(t, os.WriteFile(static, []byte("ssl.keyStore.password=secret\n"), 0o600))
	f := &MemberFiles{FS: OS(), Static: static, Next: static + ".dynamic.next"}
	must(t, f.Backup())
	must(t, f.SaveCommitted(static+".dynamic.2", "members 2", point, false))
	for _, path := range []string{static, static + ".bak"} {
		info, err := os.Stat(path)
		must(t, err)
		if got := info.Mode().Perm(); got != 0o600 {
			t.Errorf("%s has the permissions %v", filepath.Base(path), got)
		}
	}
}

// TestStaticFileMayBeALink: if the static file is a symbolic link, the file that it leads to is replaced, and the link
// stays. The other files are beside the link.
func TestStaticFileMayBeALink(t *testing.T) {
	where, conf := t.TempDir(), t.TempDir()
	real, static := filepath.Join(where, "server1.cfg"), filepath.Join(conf, "zoo.cfg")
	must(t, os.WriteFile(real, []byte("dynamicConfigFile=dynamic.1\n"), 0o600))
	must(t, os.Symlink(real, static))
	f := &MemberFiles{FS: OS(), Static: static, Next: static + ".dynamic.next"}
	must(t, f.Backup())
	must(t, f.SaveCommitted(static+".dynamic.2", "members 2", point, false))
	text, err := os.ReadFile(real)
	must(t, err)
	if string(text) != "dynamicConfigFile=dynamic.2\n" {
		t.Errorf("the file has %q", text)
	}
	if to, err := os.Readlink(static); err != nil || to != real {
		t.Errorf("the link leads to %q: %v", to, err)
	}
	if got := listed(t, where); got != "server1.cfg" {
		t.Errorf("beside the file: %s", got)
	}
	if got := listed(t, conf); got != "zoo.cfg zoo.cfg.bak zoo.cfg.dynamic.2" {
		t.Errorf("beside the link: %s", got)
	}
}

// listed returns the names in a directory.
func listed(t *testing.T, dir string) string {
	entries, err := os.ReadDir(dir)
	must(t, err)
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return strings.Join(all, " ")
}

// TestFailedWriteLeavesNothing: if a file cannot be written, its temporary file is removed.
func TestFailedWriteLeavesNothing(t *testing.T) {
	for _, op := range []Op{OpCreate, OpWrite, OpSync, OpRename} {
		for nth := 1; nth <= 3; nth++ {
			m, f := memberFiles(t)
			m.Fail(op, nth, syscall.ENOSPC)
			err := f.SaveProposed("members 2\nversion=2")
			if err == nil {
				err = f.SaveCommitted("/etc/zoo.cfg.dynamic.2", "members 2", point, true)
			}
			if !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("%s %d: %v", op, nth, err)
			}
			entries, err := m.ReadDir("/etc")
			must(t, err)
			for _, e := range entries {
				if strings.HasSuffix(e.Name, ".tmp") {
					t.Errorf("%s %d leaves %s", op, nth, e.Name)
				}
			}
		}
	}
}

// TestFailedWriteNamesTheFileOnce: the error of a write has the name of the file once.
func TestFailedWriteNamesTheFileOnce(t *testing.T) {
	next := filepath.Join(t.TempDir(), "zoo.cfg.dynamic.next")
	must(t, os.Symlink("/dev/full", next+".tmp"))
	err := (&MemberFiles{FS: OS(), Next: next}).SaveProposed("members 2\nversion=2")
	if want := "write " + next + ".tmp: " + syscall.ENOSPC.Error(); fmt.Sprint(err) != want {
		t.Errorf("%v, want %q", err, want)
	}
}
