// SPDX-License-Identifier: Apache-2.0

// Go's net/http: POST bodies to a path that is not there; the same client is served afterwards.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
)

func ask(method, url string, body io.Reader, length int64) (int, []byte) {
	request, err := http.NewRequest(method, url, body)
	if err != nil {
		log.Fatal(err)
	}
	if body != nil {
		request.ContentLength = length
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		log.Fatal(err)
	}
	return answer.StatusCode, text
}

func main() {
	base := os.Args[1]
	http.DefaultTransport.(*http.Transport).MaxConnsPerHost = 1
	for _, word := range os.Args[2:] {
		size, err := strconv.Atoi(word)
		if err != nil {
			log.Fatal(err)
		}
		piped := func() io.Reader {
			reader, writer := io.Pipe()
			go func() {
				_, err := writer.Write(make([]byte, size))
				writer.CloseWithError(err)
			}()
			return reader
		}
		for _, one := range []struct {
			body   io.Reader
			length int64
		}{{bytes.NewReader(make([]byte, size)), int64(size)}, {piped(), -1}, {piped(), int64(size)}} {
			status, text := ask("POST", base+"/no/such/path", one.body, one.length)
			var problem struct{ Title string }
			if err := json.Unmarshal(text, &problem); err != nil || problem.Title == "" {
				log.Fatalf("%v in %q", err, text)
			}
			fmt.Println(size, status)
			status, _ = ask("GET", base+"/", nil, 0)
			fmt.Println(size, status)
		}
	}
}
