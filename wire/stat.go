package wire

// Stat holds what a client is told about a znode besides its data. Times are milliseconds
// since 1970 by the leader's clock. EphemeralOwner is 0 for all znodes that are not
// ephemeral.
type Stat struct {
	Czxid          Zxid
	Mzxid          Zxid
	Ctime          int64
	Mtime          int64
	Version        int32
	Cversion       int32 // creates plus deletes of direct children
	Aversion       int32
	EphemeralOwner SessionID
	DataLength     int32
	NumChildren    int32
	Pzxid          Zxid
}

// Code encodes or decodes the fields.
func (s *Stat) Code(c *Coder) {
	s.Czxid.Code(c)
	s.Mzxid.Code(c)
	c.Int64(&s.Ctime)
	c.Int64(&s.Mtime)
	c.Int32(&s.Version)
	c.Int32(&s.Cversion)
	c.Int32(&s.Aversion)
	s.EphemeralOwner.Code(c)
	c.Int32(&s.DataLength)
	c.Int32(&s.NumChildren)
	s.Pzxid.Code(c)
}

// Permissions of an ACL entry, to be joined by or.
const (
	PermRead   int32 = 1
	PermWrite  int32 = 2
	PermCreate int32 = 4
	PermDelete int32 = 8
	PermAdmin  int32 = 16
	PermAll    int32 = 31
)

// ID is an identity: a scheme and a name within it.
type ID struct {
	Scheme string
	ID     string
}

// Code encodes or decodes the fields. A null scheme or id reads as the empty string, which
// no scheme allows, so that the server answers ErrInvalidACL, as ZooKeeper does. For the
// schemes world, digest and ip, decoding a null id fails, because ZooKeeper's checks of
// these schemes fail on null.
func (i *ID) Code(c *Coder) {
	c.nullReadsEmpty(&i.Scheme)
	switch i.Scheme {
	case SchemeWorld, SchemeDigest, SchemeIP:
		c.String(&i.ID)
	default:
		c.nullReadsEmpty(&i.ID)
	}
}

// Schemes whose meaning is fixed.
const (
	SchemeWorld  = "world" // its only id is anyone
	SchemeAuth   = "auth"  // in a request: the identities of the connection
	SchemeDigest = "digest"
	SchemeIP     = "ip"
)

// ACL is one entry of an access-control list.
type ACL struct {
	Perms int32
	ID    ID
}

// Code encodes or decodes the fields.
func (a *ACL) Code(c *Coder) {
	c.Int32(&a.Perms)
	a.ID.Code(c)
}

// OpenACL returns a list that allows everything to everybody.
func OpenACL() []ACL { return []ACL{{PermAll, ID{SchemeWorld, "anyone"}}} }

// ReadACL returns a list that allows everybody to read.
func ReadACL() []ACL { return []ACL{{PermRead, ID{SchemeWorld, "anyone"}}} }

// CreatorACL returns a list that allows everything to the authenticated identities of
// the creating connection.
func CreatorACL() []ACL { return []ACL{{PermAll, ID{SchemeAuth, ""}}} }
