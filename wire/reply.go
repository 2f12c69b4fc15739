package wire

// PathResponse carries a path: create, sync.
type PathResponse struct{ Path string }

// Code encodes or decodes the fields.
func (r *PathResponse) Code(c *Coder) { c.String(&r.Path) }

// NullPathResponse carries a path that may be null: sync echoes what it got.
type NullPathResponse struct{ Path NullString }

// Code encodes or decodes the fields.
func (r *NullPathResponse) Code(c *Coder) { c.NullString(&r.Path) }

// PathStatResponse answers create2, createContainer and createTTL.
type PathStatResponse struct {
	Path string
	Stat Stat
}

// Code encodes or decodes the fields.
func (r *PathStatResponse) Code(c *Coder) {
	c.String(&r.Path)
	r.Stat.Code(c)
}

// StatResponse answers exists, setData and setACL.
type StatResponse struct{ Stat Stat }

// Code encodes or decodes the fields.
func (r *StatResponse) Code(c *Coder) { r.Stat.Code(c) }

// DataResponse answers getData and reconfig.
type DataResponse struct {
	Data []byte
	Stat Stat
}

// Code encodes or decodes the fields.
func (r *DataResponse) Code(c *Coder) {
	c.Buffer(&r.Data)
	r.Stat.Code(c)
}

// ACLResponse answers getACL.
type ACLResponse struct {
	ACL  []ACL
	Stat Stat
}

// Code encodes or decodes the fields.
func (r *ACLResponse) Code(c *Coder) {
	c.ACLs(&r.ACL)
	r.Stat.Code(c)
}

// ChildrenResponse answers getChildren with bare names in no order.
type ChildrenResponse struct{ Children []string }

// Code encodes or decodes the fields.
func (r *ChildrenResponse) Code(c *Coder) { c.Strings(&r.Children) }

// ChildrenStatResponse answers getChildren2.
type ChildrenStatResponse struct {
	Children []string
	Stat     Stat
}

// Code encodes or decodes the fields.
func (r *ChildrenStatResponse) Code(c *Coder) {
	c.Strings(&r.Children)
	r.Stat.Code(c)
}

// EphemeralsResponse answers getEphemerals with full paths.
type EphemeralsResponse struct{ Paths []string }

// Code encodes or decodes the fields.
func (r *EphemeralsResponse) Code(c *Coder) { c.Strings(&r.Paths) }

// CountResponse answers getAllChildrenNumber.
type CountResponse struct{ Count int32 }

// Code encodes or decodes the fields.
func (r *CountResponse) Code(c *Coder) { c.Int32(&r.Count) }

// ErrorResponse answers addWatch, and stands for a failed operation in a multi.
type ErrorResponse struct{ Err Code }

// Code encodes or decodes the fields.
func (r *ErrorResponse) Code(c *Coder) { r.Err.Code(c) }

// ClientInfo is one identity of the connection, as whoAmI shows it.
type ClientInfo struct {
	Scheme string
	User   string
}

// Code encodes or decodes the fields.
func (r *ClientInfo) Code(c *Coder) {
	c.String(&r.Scheme)
	c.String(&r.User)
}

// WhoAmIResponse answers whoAmI.
type WhoAmIResponse struct{ Clients []ClientInfo }

// Code encodes or decodes the fields.
func (r *WhoAmIResponse) Code(c *Coder) {
	n := beginVector(c, &r.Clients, 8)
	for i := 0; nextElement(c, &r.Clients, i, n); i++ {
		r.Clients[i].Code(c)
	}
}
