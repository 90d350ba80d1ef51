"""Publishes over keep-alive connections until stdin ends, then prints the failures."""
import http.client, json, sys, threading

host, port, key, connections = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
stop, lock, sent, failures = threading.Event(), threading.Lock(), [0], []


def publish(number):
    connection = http.client.HTTPConnection(host, port, timeout=30)
    headers = {"authorization": "Bearer " + key, "content-type": "application/json"}
    body = json.dumps({"type": "a.python", "tenant": "a", "data": {"client": number}})
    while not stop.is_set():
        try:
            connection.request("POST", "/v1/events", body, headers)
            response = connection.getresponse()
            response.read()
            problem = None if response.status == 202 else str(response.status)
        except Exception as error:
            problem = repr(error)
            connection.close()
        with lock:
            if problem is None:
                sent[0] += 1
            else:
                failures.append(problem)


threads = [threading.Thread(target=publish, args=(number,)) for number in range(connections)]
for thread in threads:
    thread.start()
sys.stdin.read()
stop.set()
for thread in threads:
    thread.join()
print(json.dumps({"sent": sent[0], "failures": failures}))
