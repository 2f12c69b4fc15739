package wire

// Flags of a create request.
const (
	FlagPersistent              int32 = 0
	FlagEphemeral               int32 = 1
	FlagPersistentSequential    int32 = 2
	FlagEphemeralSequential     int32 = 3
	FlagContainer               int32 = 4
	FlagPersistentTTL           int32 = 5
	FlagPersistentSequentialTTL int32 = 6
)

// CreateRequest asks for create, create2 and createContainer.
type CreateRequest struct {
	Path  string
	Data  []byte
	ACL   []ACL
	Flags int32
	// NullPath says that the path was null. ZooKeeper answers such a request with
	// ErrMarshalling, but only after it has accepted the flags. Inside a multi, decoding
	// a null path fails.
	NullPath bool
}

// Code encodes or decodes the fields.
func (r *CreateRequest) Code(c *Coder) {
	c.notedPath(&r.Path, &r.NullPath)
	c.Buffer(&r.Data)
	c.ACLs(&r.ACL)
	c.Int32(&r.Flags)
}

// CreateTTLRequest asks for createTTL; TTL is in milliseconds.
type CreateTTLRequest struct {
	CreateRequest
	TTL int64
}

// Code encodes or decodes the fields.
func (r *CreateTTLRequest) Code(c *Coder) {
	r.CreateRequest.Code(c)
	c.Int64(&r.TTL)
}

// PathRequest names a path: getACL, getAllChildrenNumber.
type PathRequest struct{ Path string }

// Code encodes or decodes the fields.
func (r *PathRequest) Code(c *Coder) { c.String(&r.Path) }

// NullPathRequest names a path that may be null: sync, getEphemerals.
type NullPathRequest struct{ Path NullString }

// Code encodes or decodes the fields.
func (r *NullPathRequest) Code(c *Coder) { c.NullString(&r.Path) }

// PathVersionRequest names a path and a version, -1 for any: delete, check.
type PathVersionRequest struct {
	Path    string
	Version int32
}

// Code encodes or decodes the fields.
func (r *PathVersionRequest) Code(c *Coder) {
	c.String(&r.Path)
	c.Int32(&r.Version)
}

// PathWatchRequest names a path and whether to watch it: exists, getData,
// getChildren, getChildren2.
type PathWatchRequest struct {
	Path  string
	Watch bool
}

// Code encodes or decodes the fields.
func (r *PathWatchRequest) Code(c *Coder) {
	c.String(&r.Path)
	c.Bool(&r.Watch)
}

// SetDataRequest replaces a znode's data if Version is the znode's version or -1.
type SetDataRequest struct {
	Path    string
	Data    []byte
	Version int32
}

// Code encodes or decodes the fields. A null path reads as the empty path, because
// ZooKeeper answers both with ErrBadArguments. Inside a multi, decoding a null path fails.
func (r *SetDataRequest) Code(c *Coder) {
	c.checkedPath(&r.Path)
	c.Buffer(&r.Data)
	c.Int32(&r.Version)
}

// SetACLRequest replaces a znode's ACL if Version is the znode's aversion or -1.
type SetACLRequest struct {
	Path    string
	ACL     []ACL
	Version int32
}

// Code encodes or decodes the fields. A null path reads as the empty path, as in
// SetDataRequest.
func (r *SetACLRequest) Code(c *Coder) {
	c.checkedPath(&r.Path)
	c.ACLs(&r.ACL)
	c.Int32(&r.Version)
}

// ReconfigRequest asks for a change of the membership.
type ReconfigRequest struct {
	Joining  NullString
	Leaving  NullString
	Members  NullString // not null: the whole new membership, the others are ignored
	ConfigID int64      // the version that must be current, -1 for any
}

// Code encodes or decodes the fields.
func (r *ReconfigRequest) Code(c *Coder) {
	c.NullString(&r.Joining)
	c.NullString(&r.Leaving)
	c.NullString(&r.Members)
	c.Int64(&r.ConfigID)
}

// AuthRequest adds an identity to the connection.
type AuthRequest struct {
	Type   int32 // ignored
	Scheme NullString
	Auth   []byte
}

// Code encodes or decodes the fields.
func (r *AuthRequest) Code(c *Coder) {
	c.Int32(&r.Type)
	c.NullString(&r.Scheme)
	c.Buffer(&r.Auth)
}

// SASLRequest carries a client's token.
type SASLRequest struct{ Token []byte }

// Code encodes or decodes the fields.
func (r *SASLRequest) Code(c *Coder) { c.Buffer(&r.Token) }

// SASLResponse carries a server's token, null when the exchange is over.
type SASLResponse struct{ Token []byte }

// Code encodes or decodes the fields.
func (r *SASLResponse) Code(c *Coder) { c.Buffer(&r.Token) }
