package wire

// Identifiers that only the tests outside of the package need.
var (
	CodeNames = codeNames
	OpNames   = opNames
	MultiEnd  = multiEnd
	FrameLen  = frameLen
)

const FrameHeaderLen = frameHeaderLen

// The codes that only the tests name.
const (
	ErrAPI               = errAPI
	ErrDataInconsistency = errDataInconsistency
	ErrInvalidState      = errInvalidState
	ErrInvalidCallback   = errInvalidCallback
	ErrNothing           = errNothing
	ErrRequestTimeout    = errRequestTimeout
	ErrUnknownSession    = errUnknownSession
)
