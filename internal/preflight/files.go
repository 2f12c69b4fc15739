package preflight

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Entry is a file or directory that a server uses.
type Entry struct {
	Path string
	Mode fs.FileMode
	User int   // the owner; -1: unknown on this system
	Size int64 // bytes; of a directory 0
}

// Entries lists version-2 of the directories, and the snapshots, logs and epoch files in it. A file that
// disappears meanwhile is left out.
func Entries(dirs ...string) ([]Entry, error) {
	var all []Entry
	for _, dir := range dirs {
		dir = filepath.Join(dir, "version-2")
		names, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		paths := []string{dir}
		for _, e := range names {
			if isHistory(e.Name()) {
				paths = append(paths, filepath.Join(dir, e.Name()))
			}
		}
		for _, path := range paths {
			info, err := os.Stat(path)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, err
			}
			all = append(all, entryOf(path, info))
		}
	}
	return all, nil
}

func entryOf(path string, info fs.FileInfo) Entry {
	e := Entry{Path: path, Mode: info.Mode(), User: ownerOf(info)}
	if !info.IsDir() {
		e.Size = info.Size()
	}
	return e
}

// SizeOf returns the bytes of all files.
func SizeOf(all []Entry) int64 {
	var n int64
	for _, e := range all {
		n += e.Size
	}
	return n
}

func isHistory(name string) bool {
	for _, prefix := range []string{"snapshot.", "log.", "currentEpoch", "acceptedEpoch"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// Owners judges who may use the files. user is the user of this process. The first entry is a directory; its owner
// is the user that runs the server.
func Owners(all []Entry, user int) []Finding {
	if len(all) == 0 || all[0].User < 0 {
		return nil
	}
	runner := all[0].User
	var found []Finding
	if runner != user {
		found = append(found, Finding{Warns, all[0].Path, fmt.Sprintf("belongs to user %d, and this command runs as user %d", runner, user),
			"files that another user's server writes there cannot be read by ZooKeeper later", fmt.Sprintf("run Bellwether as user %d", runner)})
	}
	if runner == 0 {
		return found
	}
	for _, e := range all {
		need := fs.FileMode(0o006)
		if e.Mode.IsDir() {
			need = 0o007
		}
		if e.User == runner {
			need <<= 6
		}
		if e.Mode.Perm()&need != need {
			found = append(found, Finding{Prevents, e.Path, fmt.Sprintf("belongs to user %d and has mode %04o, so that user %d cannot read and write it", e.User, e.Mode.Perm(), runner),
				"a start reads every file and cuts off what a crash has left at the end of a log", fmt.Sprintf("chown the file to user %d", runner)})
		}
	}
	return found
}
