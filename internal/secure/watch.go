package secure

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// settle is how long no file must have changed before the files are read again: a program that renews
	// them writes several files, and may write a file in parts.
	settle = 200 * time.Millisecond
	// settleMax bounds that time, for a folder in which other files change all the time.
	settleMax = 2 * time.Second
	// pollInterval is how often the files are read even if no change was reported, because network file
	// systems do not report changes.
	pollInterval = time.Minute
)

// Watch reads the files again when they change, until the context ends. When a change is in use, it calls
// tell with nil; when a change cannot be used, it calls tell once with the reason. It reads a file when
// anything in the file's folder changes. So it also notices files that are renamed, and links that are
// changed, as Kubernetes does with secrets. Watch also returns at the end of the context while a read waits for a disk
// that does not answer; it then leaves the goroutine of that read behind.
func (s *Store) Watch(ctx context.Context, tell func(error)) {
	// If there is no watcher, or no folder to watch, only the interval is used.
	var events chan fsnotify.Event
	var errs chan error
	follow := func() {}
	if w, err := fsnotify.NewWatcher(); err == nil {
		defer w.Close()
		follow = func() {
			for _, dir := range s.folders() {
				_ = w.Add(dir) // has no effect on a folder that is watched already
			}
		}
		events, errs = w.Events, w.Errors
	}
	s.watch(ctx, events, errs, follow, tell)
}

// watch does the work of Watch, with the events of a watcher. Before each reading it calls follow, which adds the
// folders to which links lead now.
func (s *Store) watch(ctx context.Context, events <-chan fsnotify.Event, errs <-chan error, follow func(), tell func(error)) {
	follow()
	timer := time.NewTimer(0) // files may have changed since they were opened
	defer timer.Stop()
	var first time.Time // when the first change was seen that is not read yet; zero: there is none
	changed := func() {
		if first.IsZero() {
			first = time.Now()
		}
		timer.Reset(min(settle, time.Until(first.Add(settleMax))))
	}
	type outcome struct {
		renewed bool
		err     error
	}
	outcomes := make(chan outcome, 1) // of one read at a time
	for {
		select {
		case <-ctx.Done():
			return
		case _, ok := <-events:
			if !ok {
				events = nil
				continue
			}
			changed()
		case _, ok := <-errs:
			// Reports of changes may have been lost.
			if !ok {
				errs = nil
				continue
			}
			changed()
		case <-timer.C:
			first = time.Time{}
			go func() {
				follow()
				renewed, err := s.Reload()
				outcomes <- outcome{renewed, err}
			}()
			select {
			case o := <-outcomes:
				if o.renewed || o.err != nil {
					tell(o.err)
				}
			case <-ctx.Done():
				return
			}
			timer.Reset(pollInterval)
		}
	}
}

// folders returns the folders of all files, and the folders of the files that they link to.
func (s *Store) folders() []string {
	var dirs []string
	for _, f := range []StoreFile{s.settings.KeyStore, s.settings.TrustStore} {
		for _, name := range []string{f.Location, f.PasswordPath} {
			if name == "" || f.Location == "" {
				continue
			}
			dirs = append(dirs, filepath.Dir(name))
			if target, err := filepath.EvalSymlinks(name); err == nil {
				dirs = append(dirs, filepath.Dir(target))
			}
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}
