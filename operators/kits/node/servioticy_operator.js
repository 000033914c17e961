'use strict'
// The kit for operators in JavaScript (Node 18 and later): events in, updates out.
//
//     const { serve } = require('./servioticy_operator.js')
//     serve((event, state) => {
//       const count = state.get('count', 0) + 1
//       state.put('count', count)
//       return event.value('temperature') > 30 ? { alarms: count } : null
//     })

const net = require('node:net')

/** What the composite keeps: at most 64 KiB of JSON, committed with the batch or not at all. */
class State {
  constructor(values) {
    this.values = new Map(Object.entries(values ?? {}))
    this.isChanged = false
  }

  get(key, otherwise) {
    return this.values.has(key) ? this.values.get(key) : otherwise
  }

  put(key, value) {
    this.isChanged = Boolean(this.values.set(key, value))
  }

  drop(key) {
    this.isChanged = this.values.delete(key) || this.isChanged
  }
}

/** An update that has come: stream, timestamp, channels, version, correlation. */
class Event {
  constructor(composite, state, content) {
    Object.assign(this, content, { composite, state })
  }

  value(channel, otherwise) {
    return this.channels[channel] ?? otherwise
  }
}

/**
 * Answers until the platform ends us. `each(event, state)`, async or not, returns nothing, an update
 * or an array of them: `{channel: value}`, or an array that ends so, before it a timestamp that is
 * not the event's, the name of another stream, or both. What it throws is the error of its question, of which nothing is kept then.
 */
function serve(each) {
  const socket = new net.Socket({ fd: Number(process.env.SERVIOTICY_OPERATOR) })
  let come = Buffer.alloc(0)
  let turn = Promise.resolve()
  socket.on('data', (part) => {
    come = come.length ? Buffer.concat([come, part]) : part
    while (come.length >= 4 && come.length >= 4 + come.readUInt32BE(0)) {
      const end = 4 + come.readUInt32BE(0)
      const { questions } = JSON.parse(come.toString('utf8', 4, end))
      come = come.subarray(end)
      turn = turn.then(() => answer(socket, questions, each))
    }
  })
  socket.on('close', () => process.exit(0))
  send(socket, { ready: true })
}

async function answer(socket, questions, each) {
  const replies = []
  for (const question of questions) replies.push(await reply(question, each))
  send(socket, { replies })
}

async function reply({ id, composite, state: kept, events }, each) {
  const state = new State(kept)
  const outputs = []
  try {
    for (const [event, content] of events.entries()) {
      const made = (await each(new Event(composite, state, content), state)) ?? []
      const isOne = !Array.isArray(made) || ['number', 'string'].includes(typeof made[0])
      for (const update of isOne ? [made] : made) {
        const [channels, ...to] = [update].flat().reverse()
        const named = to.map((each) => [typeof each === 'string' ? 'stream' : 'timestamp', each])
        outputs.push({ event, channels, ...Object.fromEntries(named) })
      }
    }
  } catch (error) {
    return { id, error: String(error) || 'it failed' }
  }
  const values = state.values.size ? Object.fromEntries(state.values) : null
  return state.isChanged ? { id, outputs, state: values } : { id, outputs }
}

function send(socket, message) {
  const body = Buffer.from(JSON.stringify(message))
  const head = Buffer.alloc(4)
  head.writeUInt32BE(body.length)
  socket.write(Buffer.concat([head, body]))
}

module.exports = { serve }
