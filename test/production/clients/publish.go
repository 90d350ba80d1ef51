// Publishes over keep-alive connections until stdin ends, then prints the failures.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

func main() {
	url, key := "http://"+os.Args[1]+":"+os.Args[2]+"/v1/events", os.Args[3]
	connections, _ := strconv.Atoi(os.Args[4])
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections}}
	var stop atomic.Bool
	var sent atomic.Int64
	var lock sync.Mutex
	failures := []string{}
	publish := func() error {
		request, _ := http.NewRequest("POST", url, strings.NewReader(`{"type":"a.go","tenant":"a","data":{}}`))
		request.Header.Set("authorization", "Bearer "+key)
		request.Header.Set("content-type", "application/json")
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		io.Copy(io.Discard, response.Body)
		if response.StatusCode != 202 {
			return fmt.Errorf("%d", response.StatusCode)
		}
		return nil
	}
	var group sync.WaitGroup
	for range connections {
		group.Add(1)
		go func() {
			defer group.Done()
			for !stop.Load() {
				if err := publish(); err != nil {
					lock.Lock()
					failures = append(failures, err.Error())
					lock.Unlock()
				} else {
					sent.Add(1)
				}
			}
		}()
	}
	io.ReadAll(os.Stdin)
	stop.Store(true)
	group.Wait()
	json.NewEncoder(os.Stdout).Encode(map[string]any{"sent": sent.Load(), "failures": failures})
}
