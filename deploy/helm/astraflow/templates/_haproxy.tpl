{{- define "astraflow.haproxy" -}}
# Sends every request to a scheduler that says it is ready. Any of them answers for all tenants.
global
    maxconn {{ .Values.router.maxConnections }}
    log stdout format raw local0 notice
    hard-stop-after 30s

defaults
    mode http
    log global
    timeout connect 5s
    timeout http-request 30s
    # An event stream says something every 15 s, an upload may wait for the bucket.
    timeout client 5m
    timeout server 5m
    timeout tunnel 1h
    retries 3
    option redispatch

# Pods get new addresses when they start again.
resolvers names
    parse-resolv-conf
    resolve_retries 3
    timeout resolve 1s
    timeout retry 1s
    hold valid 5s

frontend http
    bind :8080
    default_backend schedulers

frontend health
    bind :8404
    monitor-uri /healthz

backend schedulers
    option httpchk
    http-check send meth GET uri /readyz ver HTTP/1.1 hdr Host localhost
    http-check expect status 200
    default-server check inter 1s fastinter 500ms fall 2 rise 1 on-marked-down shutdown-sessions init-addr none resolvers names
{{- range $number := until (int .Values.scheduler.replicas) }}
    server scheduler-{{ $number }} {{ include "astraflow.schedulerHost" (dict "root" $ "number" $number) }}:8080
{{- end }}
{{ end }}
