// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
)

// sell serves the application that the operator asks for prices: GET /price is answered with 404
// until POST /account has opened an account.
func sell(address string) error {
	var open atomic.Bool
	mux := http.NewServeMux()
	mux.HandleFunc("POST /account", func(http.ResponseWriter, *http.Request) { open.Store(true) })
	mux.HandleFunc("GET /price", func(w http.ResponseWriter, r *http.Request) {
		if !open.Load() {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, "3")
	})
	server := &http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: time.Minute}
	return server.ListenAndServe()
}

// buy opens an account at the bakery, and writes the price into the order. With the mistake
// "opens-later" it opens the account only after it has printed the first receipt.
func buy(ctx context.Context, client kubernetes.Interface, order *corev1.ConfigMap) error {
	if *mistake == "opens-later" {
		switch isNew, err := printed(ctx, client, order); {
		case err != nil:
			return err
		case isNew:
			if _, err := call(ctx, http.MethodPost, "/account"); err != nil {
				return err
			}
		}
	} else if _, err := call(ctx, http.MethodPost, "/account"); err != nil {
		return err
	}
	price, err := call(ctx, http.MethodGet, "/price")
	if err == nil {
		order.Data["price"] = price
	}
	return err
}

// call sends a request to the bakery, and returns the body of its answer.
func call(ctx context.Context, method, path string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, method, *bakery+path, nil)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s", method, path, answer.Status)
	}
	return string(body), err
}
