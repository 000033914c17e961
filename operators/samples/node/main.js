'use strict'
// Hands on what comes, as the paper's forward operator does.

const { serve } = require('./servioticy_operator.js')

serve((event) => event.channels)
