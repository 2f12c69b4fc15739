package wire

import "strconv"

// EventType says what happened to a znode.
type EventType int32

// The types a server sends, and those that clients make themselves.
const (
	EventNone                   EventType = -1 // made by clients: the state changed
	EventNodeCreated            EventType = 1
	EventNodeDeleted            EventType = 2
	EventNodeDataChanged        EventType = 3
	EventNodeChildrenChanged    EventType = 4
	EventDataWatchRemoved       EventType = 5 // made by clients
	EventChildWatchRemoved      EventType = 6 // made by clients
	EventPersistentWatchRemoved EventType = 7 // made by clients
)

var eventNames = map[EventType]string{
	EventNone: "None", EventNodeCreated: "NodeCreated", EventNodeDeleted: "NodeDeleted",
	EventNodeDataChanged: "NodeDataChanged", EventNodeChildrenChanged: "NodeChildrenChanged",
	EventDataWatchRemoved: "DataWatchRemoved", EventChildWatchRemoved: "ChildWatchRemoved",
	EventPersistentWatchRemoved: "PersistentWatchRemoved",
}

func (t EventType) String() string {
	if s, ok := eventNames[t]; ok {
		return s
	}
	return "event " + strconv.Itoa(int(t))
}

// StateSyncConnected is the state in every event of a server.
const StateSyncConnected int32 = 3

// WatcherEvent holds what a watch sends, behind a ReplyHeader with XidEvent.
type WatcherEvent struct {
	Type  EventType
	State int32
	Path  string
}

// Code encodes or decodes the fields.
func (e *WatcherEvent) Code(c *Coder) {
	c.Int32((*int32)(&e.Type))
	c.Int32(&e.State)
	c.String(&e.Path)
}

// AddWatchMode is the mode of a watch set by addWatch.
type AddWatchMode int32

// The modes.
const (
	WatchPersistent          AddWatchMode = 0
	WatchPersistentRecursive AddWatchMode = 1
)

// AddWatchRequest sets a persistent watch.
type AddWatchRequest struct {
	Path string
	Mode AddWatchMode
}

// Code encodes or decodes the fields.
func (r *AddWatchRequest) Code(c *Coder) {
	c.String(&r.Path)
	c.Int32((*int32)(&r.Mode))
	if c.decoding && c.err == nil && r.Mode != WatchPersistent && r.Mode != WatchPersistentRecursive {
		c.fail(ErrValue)
	}
}

// WatcherType says which watches to check or remove.
type WatcherType int32

// The types.
const (
	WatcherChildren            WatcherType = 1
	WatcherData                WatcherType = 2
	WatcherAny                 WatcherType = 3
	WatcherPersistent          WatcherType = 4 // 3.9 and later
	WatcherPersistentRecursive WatcherType = 5 // 3.9 and later
)

// WatchesRequest asks for checkWatches and removeWatches.
type WatchesRequest struct {
	Path string
	Type WatcherType
	// NullPath says that the path was null. No watch can be set on a null path.
	NullPath bool
}

// Code encodes or decodes the fields.
func (r *WatchesRequest) Code(c *Coder) {
	c.notedPath(&r.Path, &r.NullPath)
	c.Int32((*int32)(&r.Type))
	if c.decoding && c.err == nil && (r.Type < WatcherChildren || r.Type > WatcherPersistentRecursive) {
		c.fail(ErrValue)
	}
}

// SetWatchesRequest sets a client's one-shot watches again after a reconnect.
type SetWatchesRequest struct {
	RelativeZxid Zxid // the last zxid the client saw
	Data         []string
	Exist        []string
	Child        []string
}

// Code encodes or decodes the fields.
func (r *SetWatchesRequest) Code(c *Coder) {
	r.RelativeZxid.Code(c)
	c.stringsNotNull(&r.Data)
	c.stringsNotNull(&r.Exist)
	c.stringsNotNull(&r.Child)
}

// SetWatches2Request is SetWatchesRequest with the persistent watches.
type SetWatches2Request struct {
	SetWatchesRequest
	Persistent          []string
	PersistentRecursive []string
}

// Code encodes or decodes the fields.
func (r *SetWatches2Request) Code(c *Coder) {
	r.SetWatchesRequest.Code(c)
	c.stringsNotNull(&r.Persistent)
	c.stringsNotNull(&r.PersistentRecursive)
}
