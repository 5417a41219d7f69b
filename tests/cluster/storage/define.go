package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
)

// defineAll makes the custom resources of all calls, and waits until the API server serves them.
func defineAll(kubeconfig string) error {
	client, err := newClient(kubeconfig)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, call := range calls {
		if err := define(ctx, client, call); err != nil {
			return fmt.Errorf("%s: %w", call.name, err)
		}
	}
	for _, call := range calls {
		of := &store{call: call}
		for {
			err := client.Get().AbsPath(of.path("", "")).MaxRetries(0).Do(ctx).Error()
			if err == nil {
				break
			}
			// At first there is no such resource, and then its storage begins.
			if ctx.Err() != nil {
				return fmt.Errorf("%s: %w", call.name, err)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	return nil
}

func define(ctx context.Context, client rest.Interface, of call) error {
	scope := "Namespaced"
	if of.inCluster {
		scope = "Cluster"
	}
	text := map[string]any{"type": "string"}
	body, err := json.Marshal(map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata":   map[string]any{"name": of.plural() + "." + group},
		"spec": map[string]any{
			"group": group,
			"scope": scope,
			"names": map[string]any{"plural": of.plural(), "kind": of.kind()},
			"versions": []any{map[string]any{
				"name":             "v1",
				"served":           true,
				"storage":          true,
				"selectableFields": []any{map[string]any{"jsonPath": ".spec.nodeName"}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object",
					"properties": map[string]any{
						"spec":   map[string]any{"type": "object", "properties": map[string]any{"nodeName": text}},
						"status": map[string]any{"type": "object", "properties": map[string]any{"phase": text}},
					},
				}},
			}},
		},
	})
	if err != nil {
		return err
	}
	return client.Post().AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions").
		SetHeader("Content-Type", "application/json").Body(body).Do(ctx).Error()
}
