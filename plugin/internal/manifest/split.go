package manifest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// A chunk is the text of one document of a stream, without its markers unless
// directives (%YAML, %TAG) need them.
type chunk struct {
	text    []byte
	number  int    // of the document, from 1
	line    int    // lines before text
	problem string // non-empty: refused for this reason at problemLine
	badLine int
}

// utf8Text returns data as UTF-8 without a byte order mark. UTF-16 is known by
// its mark, as YAML 1.1 says. It fails on half a character.
func utf8Text(data []byte) ([]byte, error) {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		return data[3:], nil
	case bytes.HasPrefix(data, []byte("\xff\xfe")):
		order = binary.LittleEndian
	case bytes.HasPrefix(data, []byte("\xfe\xff")):
		order = binary.BigEndian
	default:
		return data, nil
	}
	if len(data)%2 != 0 {
		return nil, fmt.Errorf("UTF-16 of an odd number of bytes")
	}
	out := make([]byte, 0, len(data))
	for i := 2; i < len(data); i += 2 {
		r := rune(order.Uint16(data[i:]))
		if utf16.IsSurrogate(r) {
			if i+4 > len(data) {
				return nil, fmt.Errorf("unpaired UTF-16 surrogate")
			}
			r = utf16.DecodeRune(r, rune(order.Uint16(data[i+2:])))
			if r == utf8.RuneError {
				return nil, fmt.Errorf("unpaired UTF-16 surrogate")
			}
			i += 2
		}
		out = utf8.AppendRune(out, r)
	}
	return out, nil
}

// split cuts a stream at its document markers. In column 0 a marker ends a
// document whatever surrounds it (in a block scalar it would be indented), so
// that lines are all there is to look at. A line that starts with --- and goes
// on with anything but a comment is refused: kubectl refuses it, older readers
// drop it, YAML takes it as content.
func split(data []byte) []chunk {
	s := splitter{}
	for offset, line := 0, 0; offset < len(data); line++ {
		end := len(data)
		if n := bytes.IndexByte(data[offset:], '\n'); n >= 0 {
			end = offset + n + 1
		}
		s.take(data, offset, end, line)
		offset = end
	}
	s.finish(data)
	return s.chunks
}

type splitter struct {
	chunks []chunk
	start  int // of the text of the current document
	line   int
	open   bool // inside a document: after ---, or after content
	ended  bool // after a document end marker
	// directives of the document to come, which belong to its text
	directives bool
	problem    string
	badLine    int
}

func (s *splitter) take(data []byte, offset, end, line int) {
	text := bytes.TrimRight(data[offset:end], "\r\n")
	switch {
	case bytes.HasPrefix(text, []byte("---")):
		if !blankAfterMarker(text) {
			s.fail(line, "text after the document marker ---")
			s.open = true
			return
		}
		if s.open {
			s.emit(data[s.start:offset])
		}
		if !s.directives {
			s.start, s.line = end, line+1
		}
		s.open, s.ended, s.directives = true, false, false
	case bytes.HasPrefix(text, []byte("...")) && (len(text) == 3 || text[3] == ' ' || text[3] == '\t'):
		if !blankAfterMarker(text) {
			s.fail(line, "text after the document end marker ...")
		}
		if s.open || s.directives {
			s.emit(data[s.start:offset])
		}
		s.open, s.ended, s.directives = false, true, false
	case s.open || blankOrComment(text):
	case text[0] == '%':
		if !s.directives {
			s.start, s.line, s.directives = offset, line, true
		}
	case s.ended:
		s.fail(line, "text after the document end marker ..., without ---")
		s.start, s.line, s.open = offset, line, true
	case s.directives:
		// A directive without ---: the YAML parser says so.
		s.open = true
	default:
		s.start, s.line, s.open = offset, line, true
	}
}

func (s *splitter) finish(data []byte) {
	if s.open || s.directives {
		s.emit(data[s.start:])
	}
}

func (s *splitter) fail(line int, problem string) {
	if s.problem == "" {
		s.problem, s.badLine = problem, line+1
	}
}

func (s *splitter) emit(text []byte) {
	s.chunks = append(s.chunks, chunk{
		text: text, number: len(s.chunks) + 1, line: s.line,
		problem: s.problem, badLine: s.badLine,
	})
	s.problem, s.badLine = "", 0
}

// blankAfterMarker reports whether a marker line holds the marker alone, or
// with a comment.
func blankAfterMarker(line []byte) bool {
	rest := line[3:]
	if len(rest) == 0 {
		return true
	}
	return (rest[0] == ' ' || rest[0] == '\t') && blankOrComment(rest)
}

func blankOrComment(line []byte) bool {
	line = bytes.TrimLeft(line, " \t\r")
	return len(line) == 0 || line[0] == '#'
}
