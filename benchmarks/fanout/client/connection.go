package main

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http/httputil"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
)

// A connection of HTTP/1.1, with one buffer that all its answers are read through.
type connection struct {
	net.Conn
	reader *bufio.Reader
	host   string
	token  string
}

func dial(t target, bufferSize int) (*connection, error) {
	address, err := url.Parse(t.server)
	if err != nil {
		return nil, err
	}
	conn, err := net.Dial("tcp", address.Host)
	if err != nil {
		return nil, err
	}
	if address.Scheme == "https" {
		// No ALPN: HTTP/1.1, one connection for each watcher, as with the other server.
		conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
	}
	return &connection{conn, bufio.NewReaderSize(conn, bufferSize), address.Host, t.token}, nil
}

type answer struct {
	status int
	header textproto.MIMEHeader
	body   io.Reader
}

// Sends a GET, and reads the head of the answer.
func (c *connection) get(path string, headers string) (*answer, error) {
	authorization := ""
	if c.token != "" {
		authorization = "Authorization: Bearer " + c.token + "\r\n"
	}
	request := "GET " + path + " HTTP/1.1\r\nHost: " + c.host + "\r\n" + authorization + headers + "\r\n"
	if _, err := io.WriteString(c, request); err != nil {
		return nil, err
	}
	text := textproto.NewReader(c.reader)
	line, err := text.ReadLine()
	if err != nil {
		return nil, err
	}
	parts := strings.SplitN(line, " ", 3)
	if len(parts) < 2 {
		return nil, fmt.Errorf("not HTTP: %q", line)
	}
	status, _ := strconv.Atoi(parts[1])
	header, err := text.ReadMIMEHeader()
	if err != nil {
		return nil, err
	}
	var body io.Reader = strings.NewReader("")
	if header.Get("Transfer-Encoding") == "chunked" {
		body = httputil.NewChunkedReader(c.reader)
	} else if length, _ := strconv.ParseInt(header.Get("Content-Length"), 10, 64); length > 0 && status != 304 {
		body = io.LimitReader(c.reader, length)
	}
	return &answer{status, header, body}, nil
}

// Reads the rest of an answer; returns how many bytes it was.
func (c *connection) drain(a *answer, buffer []byte) (int64, error) {
	var total int64
	for {
		n, err := a.body.Read(buffer)
		total += int64(n)
		if err == io.EOF {
			break
		}
		if err != nil {
			return total, err
		}
	}
	if a.header.Get("Transfer-Encoding") == "chunked" {
		// The line after the last chunk.
		if _, err := c.reader.Discard(2); err != nil {
			return total, err
		}
	}
	return total, nil
}
