package store

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"bellwether/wire"
)

// versionDir holds everything but the markers, in both directories.
const versionDir = "version-2"

// Name prefixes. ZooKeeper reads every file whose name begins with one of the first two,
// whatever follows, so no other file of this package may begin with them.
const (
	logPrefix      = "log."
	snapshotPrefix = "snapshot."
	tempPrefix     = "tmp."   // prefix of a file that is being written; the next open removes such files
	asidePrefix    = "aside." // prefix of a file that is not used any more but kept; it is purged when it is old enough
)

// fileName is the name of a log or snapshot, parsed.
type fileName struct {
	path string
	zxid wire.Zxid
	form Compression // the compression of a snapshot
	size int64
}

func (f fileName) base() string { return filepath.Base(f.path) }

func logName(z wire.Zxid) string { return logPrefix + strconv.FormatUint(uint64(z), 16) }

func snapshotName(z wire.Zxid, form Compression) string {
	name := snapshotPrefix + strconv.FormatUint(uint64(z), 16)
	if form != Plain {
		name += "." + string(form)
	}
	return name
}

// parseName parses a name that consists of prefix, a hex zxid and, if forms is set, the
// extension of a compression.
func parseName(name, prefix string, forms bool) (z wire.Zxid, form Compression, ok bool) {
	rest, ok := strings.CutPrefix(name, prefix)
	if !ok {
		return 0, Plain, false
	}
	rest, ext, found := strings.Cut(rest, ".")
	form = Compression(ext)
	if found && (!forms || form != Gzip && form != Snappy) {
		return 0, Plain, false
	}
	v, err := strconv.ParseUint(rest, 16, 63)
	return wire.Zxid(v), form, err == nil
}

// listFiles returns the files of dir with this prefix by ascending zxid. strays are the
// entries with this prefix that have a wrong name or are not files.
func listFiles(fs FS, dir, prefix string) (files []fileName, strays []misplaced, err error) {
	entries, err := fs.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name)
		z, form, ok := parseName(e.Name, prefix, prefix == snapshotPrefix)
		switch {
		case ok && e.Not == "":
			files = append(files, fileName{path, z, form, e.Size})
		case strings.HasPrefix(e.Name, prefix):
			strays = append(strays, misplaced{path, e.Not})
		}
	}
	slices.SortStableFunc(files, func(a, b fileName) int { return cmp.Compare(a.zxid, b.zxid) })
	return files, strays, nil
}

// setAside durably renames a file to a name that no server reads, and returns the new
// path.
func setAside(fs FS, path string) (string, error) {
	dir, base := filepath.Split(path)
	for n := 1; ; n++ {
		to := filepath.Join(dir, asidePrefix+base)
		if n > 1 {
			to += "." + strconv.Itoa(n)
		}
		if _, err := fs.Stat(to); err == nil {
			continue
		}
		if err := fs.Rename(path, to); err != nil {
			return "", fmt.Errorf("set aside: %w", err)
		}
		return to, fs.SyncDir(dir)
	}
}
