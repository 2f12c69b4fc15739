package shell

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"bellwether/wire"
	"bellwether/zk"
)

// watchKind says what a watch of the shell watches.
type watchKind int

const (
	dataWatch watchKind = iota + 1
	childWatch
	persistentWatch
	recursiveWatch
)

// watchKey identifies a watch. A path has at most one of each kind, as in ZooKeeper's CLI.
type watchKey struct {
	kind watchKind
	path string
}

// events prints what happens to the session and to the znodes that it watches. While a command
// runs, events wait; drain prints them. While the shell waits for a line, one goroutine
// prints them: listen starts it.
type events struct {
	session *session
	shown   bool // printwatches is on

	status  zk.Status // the last one that was printed
	order   []watchKey
	once    map[watchKey]*zk.Watch
	streams map[watchKey]*zk.Stream
}

// follow reports the state and the events of a client from now on.
func (e *events) follow(c *zk.Client) {
	e.forget()
	e.status = c.State()
}

// skip leaves out the changes of state so far, because the shell does not report its first connection.
func (e *events) skip() { e.status = e.session.client.State() }

// forget drops all watches.
func (e *events) forget() {
	e.status, e.order = zk.Status{}, nil
	e.once, e.streams = map[watchKey]*zk.Watch{}, map[watchKey]*zk.Stream{}
}

func (e *events) watches(kind watchKind, path string) bool {
	key := watchKey{kind, path}
	return e.once[key] != nil || e.streams[key] != nil
}

// add adds a watch that a command has set at a path. Its event will be printed.
func (e *events) add(kind watchKind, path string, w *zk.Watch) {
	key := watchKey{kind, path}
	e.once[key] = w
	e.order = append(e.order, key)
}

func (e *events) addStream(kind watchKind, path string, s *zk.Stream) {
	key := watchKey{kind, path}
	e.streams[key] = s
	e.order = append(e.order, key)
}

// remove drops the watches of these kinds at a path. It returns them and their keys in the order
// of kinds.
func (e *events) remove(path string, kinds ...watchKind) (once []*zk.Watch, streams []*zk.Stream, keys []watchKey) {
	for _, kind := range kinds {
		key := watchKey{kind, path}
		if w := e.once[key]; w != nil {
			once, keys = append(once, w), append(keys, key)
		}
		if s := e.streams[key]; s != nil {
			streams, keys = append(streams, s), append(keys, key)
		}
		e.drop(key)
	}
	return once, streams, keys
}

func (e *events) drop(key watchKey) {
	delete(e.once, key)
	delete(e.streams, key)
	e.order = slices.DeleteFunc(e.order, func(k watchKey) bool { return k == key })
}

// drain prints all events that have arrived.
func (e *events) drain() {
	if text := e.collect(); text != "" {
		e.print(text)
	}
}

// collect returns the text of the events that have arrived. An event that several watches report
// is in it once.
func (e *events) collect() string {
	var b strings.Builder
	for changed(e.status) {
		next, err := e.status.Next(context.Background())
		if err != nil {
			break
		}
		if text := e.transition(e.status, next); text != "" {
			b.WriteString(text)
		}
		e.status = next
	}
	seen := map[zk.Event]bool{}
	for _, key := range slices.Clone(e.order) {
		for _, event := range e.arrived(key) {
			if !seen[event] {
				b.WriteString(e.eventText(event))
			}
			seen[event] = true
		}
	}
	return b.String()
}

func changed(s zk.Status) bool {
	select {
	case <-s.Changed():
		return true
	default:
		return false
	}
}

// arrived returns the events that a watch has not reported yet.
func (e *events) arrived(key watchKey) (all []zk.Event) {
	if w := e.once[key]; w != nil {
		select {
		case <-w.Done():
			e.drop(key)
			if event, err := w.Wait(context.Background()); err == nil {
				all = append(all, event)
			}
		default:
		}
	}
	for s := e.streams[key]; s != nil; {
		select {
		case <-s.Ready():
			event, err := s.Next(context.Background())
			if err != nil {
				e.drop(key)
				return all
			}
			if event.Type != wire.EventNone {
				all = append(all, event)
			}
			continue
		default:
		}
		break
	}
	return all
}

// listen prints events until stop is called, on one goroutine. No other method may be called
// meanwhile.
func (e *events) listen() (stop func()) {
	over := make(chan struct{})
	var goroutine sync.WaitGroup
	goroutine.Go(func() {
		for e.wait(over) {
			e.drain()
		}
	})
	return func() {
		close(over)
		goroutine.Wait()
	}
}

// wait waits for an event; it returns false when over is closed.
func (e *events) wait(over <-chan struct{}) bool {
	receive := func(c any) reflect.SelectCase {
		return reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(c)}
	}
	cases := []reflect.SelectCase{receive(over)}
	if e.session.client != nil && !e.status.Final() {
		cases = append(cases, receive(e.status.Changed()))
	}
	for _, w := range e.once {
		cases = append(cases, receive(w.Done()))
	}
	first := len(cases)
	keys := slices.Collect(maps.Keys(e.streams))
	for _, key := range keys {
		cases = append(cases, receive(e.streams[key].Ready()))
	}
	chosen, _, _ := reflect.Select(cases)
	if chosen >= first { // the receive has taken the value that announces the event, so the event is printed now
		e.next(keys[chosen-first])
	}
	return chosen > 0
}

// next prints the next event of a stream.
func (e *events) next(key watchKey) {
	event, err := e.streams[key].Next(context.Background())
	if err != nil {
		e.drop(key)
		return
	}
	if event.Type != wire.EventNone {
		e.print(e.eventText(event))
	}
}

// transition returns the text of a change of the session's state, in the words of ZooKeeper's CLI.
func (e *events) transition(from, to zk.Status) string {
	if to.State == zk.Connecting && from.State != zk.Connected && from.State != zk.ReadOnly {
		return ""
	}
	return e.stateText(to)
}

// stateNames are the names of states in ZooKeeper's events, and stateShown those in its prompt.
var (
	stateNames = map[zk.State]string{
		zk.Connecting: "Disconnected", zk.Connected: "SyncConnected", zk.ReadOnly: "ConnectedReadOnly",
		zk.Expired: "Expired", zk.AuthFailed: "AuthFailed", zk.Closed: "Closed",
	}
	stateShown = map[zk.State]string{
		zk.Connecting: "CONNECTING", zk.Connected: "CONNECTED", zk.ReadOnly: "CONNECTEDREADONLY",
		zk.Expired: "CONNECTING", zk.AuthFailed: "AUTH_FAILED", zk.Closed: "CLOSED",
	}
)

func (e *events) stateText(s zk.Status) string {
	if !e.session.json() {
		return watchedEvent(stateNames[s.State], "None", "null", 0)
	}
	l := watchLine{Time: Instant(s.Since.UnixMilli()), State: s.State.String(), Server: s.Server}
	if s.Session != 0 {
		l.Session = s.Session.String()
	}
	if s.Err != nil {
		l.Error = s.Err.Error()
	}
	return jsonText(l)
}

func (e *events) eventText(event zk.Event) string {
	if !e.session.json() {
		return watchedEvent("SyncConnected", event.Type.String(), event.Path, event.Zxid)
	}
	l := watchLine{Time: Instant(time.Now().UnixMilli()), Event: event.Type.String(), Path: event.Path}
	if event.Zxid > 0 {
		l.Zxid = event.Zxid.String()
	}
	return jsonText(l)
}

// watchedEvent returns an event as ZooKeeper's CLI prints it. The zxid is printed as 3.9 does, if the server
// has sent one.
func watchedEvent(state, kind, path string, zxid zk.Zxid) string {
	text := fmt.Sprintf("\nWATCHER::\n\nWatchedEvent state:%s type:%s path:%s", state, kind, path)
	if zxid > 0 {
		text += fmt.Sprintf(" zxid: %d", int64(zxid))
	}
	return text + "\n"
}

// print prints a text unless printwatches is off.
func (e *events) print(text string) {
	switch s := e.session; {
	case !e.shown:
	case s.editor != nil:
		s.editor.Print(text)
	default:
		fmt.Fprint(s.out, text) // the Output keeps the error
	}
}

// removed prints the events with which ZooKeeper's client reports that watches were removed.
func (e *events) removed(keys []watchKey) {
	kinds := map[watchKind]wire.EventType{
		dataWatch: wire.EventDataWatchRemoved, childWatch: wire.EventChildWatchRemoved,
		persistentWatch: wire.EventPersistentWatchRemoved, recursiveWatch: wire.EventPersistentWatchRemoved,
	}
	for _, key := range keys {
		e.print(e.eventText(zk.Event{Type: kinds[key.kind], Path: key.path}))
	}
}

// errNoWatch is the error of removewatches if there is no such watch, in the words of ZooKeeper's CLI.
func errNoWatch(path string) error {
	return errors.New("KeeperErrorCode = No such watcher for " + path)
}
