package embed

import "bellwether/wire"

// The operations, for [Ensemble.LoseNextReply]. OpCreate stands for every kind of create.
const (
	OpCreate       = wire.OpCreate
	OpDelete       = wire.OpDelete
	OpExists       = wire.OpExists
	OpGetData      = wire.OpGetData
	OpSetData      = wire.OpSetData
	OpGetACL       = wire.OpGetACL
	OpSetACL       = wire.OpSetACL
	OpGetChildren  = wire.OpGetChildren2 // what package zk sends for Children
	OpSync         = wire.OpSync
	OpMulti        = wire.OpMulti
	OpMultiRead    = wire.OpMultiRead
	OpAddWatch     = wire.OpAddWatch
	OpCloseSession = wire.OpCloseSession
)
